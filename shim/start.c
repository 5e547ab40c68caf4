#include "start.h"

#include "publish.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* More than the longest folder of traces: what is cut here is too long anyway,
 * and found so. */
enum { ROOM = 2048 };

static const char *const names[OPTIONS] = {
#define CONFIG(id_, variable_, ...) variable_,
#include "commtrace/config.def"
};

/* Copies, since programs write their titles over their first environment. */
static char whole[OPTIONS][ROOM];
static const char *noted[OPTIONS]; /* in there, behind the folder if any */

static size_t append_folder(char *text)
{
    if (!getcwd(text, ROOM))
        return 0;
    size_t n = strlen(text);
    if (n + 1 < ROOM && text[n - 1] != '/')
        text[n++] = '/';
    return n;
}

static void note(enum option option, const char *value)
{
    char *text = whole[option];
    size_t before = 0;
    if (option == OPTION_dir && *value && *value != '/')
        before = append_folder(text);
    size_t n = strnlen(value, ROOM - 1 - before);
    memcpy(text + before, value, n);
    text[before + n] = 0;
    noted[option] = text + before;
}

void start_note(char *const *env)
{
    for (; env && *env; env++) {
        if (strncmp(*env, "COMMTRACE_", 10) != 0)
            continue;
        for (int i = 0; i < OPTIONS; i++) {
            size_t n = strlen(names[i]);
            /* Of two the first, as getenv() has it. */
            if (!noted[i] && !strncmp(*env, names[i], n) && (*env)[n] == '=')
                note((enum option)i, *env + n + 1);
        }
    }
}

/* A program with more rights than its user takes no orders from him. */
__attribute__((constructor)) static void start(int argc, char **argv,
                                               char **env)
{
    int saved = errno;
    (void)argc, (void)argv;
    if (!getauxval(AT_SECURE)) {
        publish_clean();
        start_note(env);
    }
    errno = saved;
}

const char *start_option(enum option option)
{
    const char *now = getenv(names[option]);
    if (now && (!noted[option] || strcmp(now, noted[option]) != 0))
        return now;
    return noted[option] ? whole[option] : NULL;
}

const char *start_option_name(enum option option)
{
    return names[option];
}
