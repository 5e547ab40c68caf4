/* The program's files are its own, whatever it does to all of them. */
#include "ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The program's files get the numbers that they get without us. */
static void run_numbers(char **argv)
{
    (void)argv;
    int before = dup(0);
    init(1);
    ops(10);
    await_trace();
    if (dup(0) != before + 1)
        abort();
}

/* Closes all files, as daemons do, and opens its own: they stay its own. */
static void run_close_all(char **argv)
{
    enum { FILES = 8 };
    FILE *out[FILES], *own[FILES];
    char text[16];
    (void)argv;
    init(1);
    ops(5);
    await_trace();
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    for (int i = 0; i < FILES; i++) {
        own[i] = tmpfile();
        out[i] = fdopen(dup(1), "w");
        if (fputs("mine", own[i]) < 0 || fflush(own[i]) != 0)
            abort();
    }
    ops(5);
    usleep(100000); /* the writer meets what it can */
    for (int i = 0; i < FILES; i++) {
        rewind(own[i]);
        if (!fgets(text, sizeof(text), own[i]) || strcmp(text, "mine") != 0)
            abort();
        fprintf(out[i], "%d\n", i); /* written when stdio ends, after us */
    }
}

/* What it prints goes nowhere, and not into files of ours. */
static void run_no_stdio(char **argv)
{
    (void)argv;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    init(1);
    ops(10);
    await_trace();
    for (int fd = 0; fd < 3; fd++)
        if (write(fd, data, sizeof(data)) != -1)
            abort();
}

/* What gets the number of stderr is not spoken to, whatever happens to us. */
static void run_new_stderr(char **argv)
{
    char text[64] = "";
    (void)argv;
    init(1);
    ops(5);
    await_trace();
    close(2);
    FILE *own = tmpfile();
    if (!own || fileno(own) != 2)
        abort();
    remove_trace();
    ops(5);
    usleep(200000); /* the writer meets that it is gone */
    rewind(own);
    if (fgets(text, sizeof(text), own))
        printf("in it: %s\n", text);
}

const struct way file_ways[] = {
    {"numbers", run_numbers},
    {"close_all", run_close_all},
    {"no_stdio", run_no_stdio},
    {"new_stderr", run_new_stderr},
    {0},
};
