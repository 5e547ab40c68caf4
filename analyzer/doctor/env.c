#include "doctor/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OURS "COMMTRACE_"
#define NCCLS "NCCL_"
#define NAME 64 /* more than a name of these has */

extern char **environ;

/* Those that decide what is recorded. */
static bool is_ours(const char *variable)
{
    return (!strncmp(variable, OURS, strlen(OURS)) ||
            !strncmp(variable, NCCLS, strlen(NCCLS))) &&
           strcspn(variable, "=") < NAME;
}

/* value: NULL takes the variable away. */
static void change(struct command *command, const char *variable, size_t n,
                   const char *value)
{
    char name[NAME];

    if ((size_t)snprintf(name, sizeof name, "%.*s", (int)n, variable) >=
        sizeof name)
        return;
    if (!strcmp(name, "LD_PRELOAD"))
        command->preload = value ? value : "";
    if (!strcmp(name, OURS "DIR"))
        command->dir = value ? value : "";
    if (is_ours(name) && value)
        setenv(name, value, 1);
    else if (is_ours(name))
        unsetenv(name);
}

static void take_all_away(struct command *command)
{
    command->preload = command->dir = "";
    for (char **at = environ; at && *at;) {
        if (is_ours(*at)) {
            change(command, *at, strcspn(*at, "="), NULL);
            at = environ;
        } else {
            at++;
        }
    }
}

/* The value of "--name=value", or of "--name value"; NULL: another option. */
static const char *value_of(const char *name, char *const **words)
{
    size_t n = strlen(name);
    const char *word = **words;

    if (strncmp(word, name, n) != 0 || (word[n] && word[n] != '='))
        return NULL;
    if (word[n])
        return word + n + 1;
    return *++*words;
}

/* An option by its whole name; the word behind -S or NULL. */
static const char *take_long(struct command *command, char *const **words)
{
    const char *value;

    if (!strcmp(**words, "--ignore-environment"))
        take_all_away(command);
    else if ((value = value_of("--unset", words)))
        change(command, value, strlen(value), NULL);
    else if (!(value = value_of("--chdir", words)) &&
             !(value = value_of("--argv0", words)))
        return value_of("--split-string", words);
    return NULL;
}

/* Options by letters, of which the last may have a value. */
static const char *take_short(struct command *command, char *const **words)
{
    for (const char *letter = **words + 1; *letter; letter++) {
        const char *value;

        if (*letter == 'i')
            take_all_away(command);
        if (!strchr("uCaS", *letter))
            continue;
        value = letter[1] ? letter + 1 : *++*words;
        if (value && *letter == 'u')
            change(command, value, strlen(value), NULL);
        return *letter == 'S' ? value : NULL;
    }
    return NULL;
}

/* Puts the words of text and then rest into command->words. */
static char *const *join(struct command *command, const char *text,
                         char *const *rest)
{
    const size_t most = sizeof command->words / sizeof *command->words - 1;
    char *words[sizeof command->words / sizeof *command->words] = {NULL};
    char *copy = command->text + command->used, *save = NULL;
    size_t room = sizeof command->text - command->used, n = 0;
    size_t size = strlen(text) + 1;

    if (size > room)
        return NULL;
    memcpy(copy, text, size);
    command->used += size;
    for (char *word = strtok_r(copy, " \t", &save); word && n < most;
         word = strtok_r(NULL, " \t", &save))
        words[n++] = word;
    while (*rest && n < most)
        words[n++] = *rest++;
    memcpy(command->words, words, sizeof words);
    return command->words;
}

char *const *env_split(struct command *command, char *const *words)
{
    words = join(command, words[0], words + 1);
    return words ? env_starts(command, words) : NULL;
}

/* The words behind the options. */
static char *const *take_options(struct command *command, char *const *words)
{
    for (; *words && **words == '-'; words++) {
        const char *split;

        if (!strcmp(*words, "-"))
            take_all_away(command);
        if (!strcmp(*words, "-") || !strcmp(*words, "--"))
            return words + 1;
        split = words[0][1] == '-' ? take_long(command, &words)
                                   : take_short(command, &words);
        if (!*words)
            return words;
        if (split) {
            words = join(command, split, words + 1);
            return words ? take_options(command, words) : NULL;
        }
    }
    return words;
}

char *const *env_starts(struct command *command, char *const *words)
{
    const char *end;

    words = take_options(command, words);
    for (; words && *words && (end = strchr(*words, '=')); words++)
        change(command, *words, (size_t)(end - *words), end + 1);
    return words && *words ? words : NULL;
}
