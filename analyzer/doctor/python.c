#include "doctor/python.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/child.h"
#include "doctor/closure.h"

/* Where packages lie; finding one imports no more than its parents. */
static const char question[] =
    "import importlib.util, os\n"
    "def place(name):\n"
    "    try:\n"
    "        spec = importlib.util.find_spec(name)\n"
    "    except Exception:\n"
    "        return ''\n"
    "    places = list(spec.submodule_search_locations or []) if spec else []\n"
    "    return os.path.realpath(places[0]) if places else ''\n"
    "print('torch', place('torch'))\n"
    "print('nccl', place('nvidia.nccl'))\n";

bool python_is(const char *program)
{
    const char *base = strrchr(program, '/');
    char real[PATH_MAX];
    ssize_t n;

    base = base ? base + 1 : program;
    if (!strncmp(base, "python", 6) || !strncmp(base, "pypy", 4))
        return true;
    n = readlink(program, real, sizeof real - 1);
    real[n > 0 ? n : 0] = 0;
    base = strrchr(real, '/');
    return !strncmp(base ? base + 1 : real, "python", 6);
}

/* The rest of the line that starts with word, without its end. */
static void take(char *out, const char *text, const char *word)
{
    const char *line = strstr(text, word);

    *out = 0;
    if (!line)
        return;
    line += strlen(word) + 1;
    snprintf(out, PATH_MAX, "%.*s", (int)strcspn(line, "\n"), line);
}

static bool has(char *path, const char *folder, const char *file)
{
    if (!*folder || snprintf(path, PATH_MAX, "%s/%s", folder, file) >= PATH_MAX)
        return false;
    return access(path, R_OK) == 0;
}

static void look_into_torch(struct python *python, const char *folder,
                            const char *library)
{
    static struct closure closure;
    char cuda[PATH_MAX];

    snprintf(python->package, sizeof python->package, "torch");
    if (!has(cuda, folder, "lib/libtorch_cuda.so") ||
        closure_of(&closure, cuda, library, true) < 0)
        return;
    snprintf(python->nccl, sizeof python->nccl, "%s", closure.nccl);
    snprintf(python->runtime, sizeof python->runtime, "%s", closure.runtime);
    snprintf(python->driver, sizeof python->driver, "%s", closure.driver);
    if (!*closure.nccl)
        snprintf(python->inside, sizeof python->inside, "%s", closure.inside);
    python->inside_speaks = closure.inside_speaks;
}

int python_ask(struct python *python, const char *program, const char *library)
{
    const char *argv[] = {program, "-c", question, NULL};
    char text[2 * PATH_MAX + 64], torch[PATH_MAX], nccl[PATH_MAX];

    *python = (struct python){.package = ""};
    if (child_read(argv, NULL, false, text, sizeof text) != 0)
        return -1;
    take(torch, text, "torch");
    take(nccl, text, "\nnccl");
    if (*torch) {
        look_into_torch(python, torch, library);
        if (*python->nccl || *python->inside)
            return 0;
    }
    if (has(python->nccl, nccl, "lib/libnccl.so.2"))
        snprintf(python->package, sizeof python->package, "nvidia.nccl");
    else
        *python->nccl = 0;
    return 0;
}
