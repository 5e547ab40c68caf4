#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/cli.h"
#include "report/selection.h"

#define MOST_RANKS (1 << 20)

/* A decimal number from 0 on; the rest of text, NULL: there is none. */
static const char *read_number(const char *text, int *value_p)
{
    char *end;
    long value;

    if (*text < '0' || *text > '9')
        return NULL;
    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || value > INT_MAX)
        return NULL;
    *value_p = (int)value;
    return end;
}

/* "5", "5..9", "5..", "..9" */
int selection_set_steps(struct selection *s, const struct cli *cli,
                        const char *text)
{
    const char *rest = text;

    s->first_step = 0;
    s->last_step = INT_MAX;
    s->steps_text = text;
    if (strncmp(text, "..", 2) != 0) {
        rest = read_number(text, &s->first_step);
        if (rest && !*rest)
            s->last_step = s->first_step;
    }
    if (rest && !strncmp(rest, "..", 2) && text[2]) {
        rest += 2;
        if (*rest)
            rest = read_number(rest, &s->last_step);
    }
    if (!rest || *rest)
        cli_fail(cli, "--steps: '%s' is not A..B, A.., ..B or A", text);
    else if (s->first_step > s->last_step)
        cli_fail(cli, "--steps: '%s' ends before it begins", text);
    else
        return 0;
    return -1;
}

static int add_ranks(struct selection *s, int first, int last)
{
    const int n = last - first + 1;
    int *ranks;

    if (n > MOST_RANKS || s->nranks > MOST_RANKS)
        return -1;
    ranks = realloc(s->ranks, (size_t)(s->nranks + n) * sizeof *ranks);
    if (!ranks)
        return -1;
    s->ranks = ranks;
    for (int i = 0; i < n; i++)
        s->ranks[s->nranks++] = first + i;
    return 0;
}

static int compare_ints(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void sort_ranks(struct selection *s)
{
    int n = 0;

    qsort(s->ranks, (size_t)s->nranks, sizeof *s->ranks, compare_ints);
    for (int i = 0; i < s->nranks; i++)
        if (!n || s->ranks[n - 1] != s->ranks[i])
            s->ranks[n++] = s->ranks[i];
    s->nranks = n;
}

/* "3" or "0-7", to a comma or the end; NULL: neither. */
static const char *read_ranks(struct selection *s, const char *text)
{
    int first, last;
    const char *rest = read_number(text, &first);

    last = first;
    if (rest && *rest == '-')
        rest = read_number(rest + 1, &last);
    if (!rest || (*rest && *rest != ',') || last < first ||
        add_ranks(s, first, last) < 0)
        return NULL;
    return rest;
}

int selection_set_ranks(struct selection *s, const struct cli *cli,
                        const char *text)
{
    const char *rest = text;

    s->nranks = 0;
    s->ranks_text = text;
    while ((rest = read_ranks(s, rest)) && *rest)
        rest++;
    if (rest) {
        sort_ranks(s);
        return 0;
    }
    cli_fail(cli, "--ranks: '%s' is not a list as 0-7,12", text);
    return -1;
}

/* "2026-11-30T01:25:44.5Z", the seconds and what follows may be missing. */
static bool read_date(const char *text, int64_t *ns_p)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M", &tm);
    double seconds = 0;
    int month;

    if (!rest)
        return false;
    if (*rest == ':') {
        char *end;

        seconds = strtod(rest + 1, &end);
        if (end == rest + 1 || rest[1] < '0' || rest[1] > '9' || seconds >= 61)
            return false;
        rest = end;
    }
    if (*rest == 'Z')
        rest++;
    month = tm.tm_mon;
    return !*rest && !__builtin_mul_overflow(timegm(&tm), 1000000000, ns_p) &&
           !__builtin_add_overflow(*ns_p, (int64_t)(seconds * 1e9 + .5),
                                   ns_p) &&
           tm.tm_mon == month; /* timegm() makes March of February 30 */
}

static const struct unit {
    const char *name;
    double ns;
} units[] = {{"", 1e9},   {"s", 1e9},  {"ms", 1e6},
             {"us", 1e3}, {"m", 60e9}, {"h", 3600e9}};

/* "12.5", "12.5s", "300ms", "2m", "1h" */
static bool read_duration(const char *text, int64_t *ns_p)
{
    char *rest;
    double value;

    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    value = strtod(text, &rest);
    for (size_t i = 0; rest != text && i < sizeof units / sizeof *units; i++)
        if (!strcmp(rest, units[i].name) && value * units[i].ns < 9e18) {
            *ns_p = (int64_t)(value * units[i].ns + .5);
            return true;
        }
    return false;
}

int selection_set_moment(struct selection_moment *moment, const struct cli *cli,
                         const char *option, const char *text)
{
    moment->text = text;
    moment->date = read_date(text, &moment->ns);
    if (moment->date || read_duration(text, &moment->ns))
        return 0;
    cli_fail(cli,
             "--%s: '%s' is neither a time since the job's start, as 12.5, "
             "300ms or 2m, nor a date, as 2026-11-30T01:25:44 (UTC)",
             option, text);
    return -1;
}

bool selection_is_all(const struct selection *s)
{
    return !s->steps_text && !s->ranks_text && !s->from.text && !s->to.text;
}

void selection_release(struct selection *s)
{
    free(s->ranks);
    s->ranks = NULL;
    s->nranks = 0;
}
