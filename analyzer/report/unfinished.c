#include "report/unfinished.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define SIGNALS 3

static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[SIGNALS];
static char unfinished[4096];

static void end(int number)
{
    unlink(unfinished);
    signal(number, SIG_DFL);
    raise(number); /* comes when this returns */
}

void unfinished_begin(const char *path)
{
    const struct sigaction action = {.sa_handler = end};

    snprintf(unfinished, sizeof unfinished, "%s", path);
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler == SIG_DFL) /* nohup ignores SIGHUP */
            sigaction(signals[i], &action, NULL);
    }
}

void unfinished_end(void)
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
}
