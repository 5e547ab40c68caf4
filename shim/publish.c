#include "publish.h"

#include "lock.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names what of an environment is ours, for processes that inherit it. */
#define MARKER "COMMTRACE_PUBLISHED"

enum { PUBLICATIONS = 8, VERSIONS = 64, TRIES = 8 };

/* An environment of ours, and what it was made from. */
struct version {
    char **array;
    char **made; /* the same entries, to see whether somebody changed them */
    char **users;
};

static struct {
    struct lock lock;
    struct publication *up[PUBLICATIONS];
    unsigned nup;
    struct version versions[VERSIONS];
    _Atomic unsigned nversions;
    unsigned ndescribed;
    bool follows_forks;
} published = {.lock = LOCK_INITIALIZER};

static size_t name_length(const char *text)
{
    return strcspn(text, "=");
}

static char *entry(char **array, size_t i)
{
    return __atomic_load_n(&array[i], __ATOMIC_RELAXED);
}

/* Ours in an environment: of what is up, and of what has just left the list
 * and is still there. */
struct ours {
    const struct publication *leaving; /* or NULL */
    bool copied; /* somebody has copied the texts, too: they are compared */
};

static bool is_text(const struct ours *ours, const char *text, const char *our)
{
    return text == our || (ours->copied && !strcmp(text, our));
}

static bool is_of(const struct ours *ours, const struct publication *of,
                  const char *text)
{
    bool found = is_text(ours, text, of->marker);
    for (int i = 0; i < PUBLICATION_TEXTS && of->texts[i]; i++)
        found |= is_text(ours, text, of->texts[i]);
    return found;
}

static bool is_ours(const struct ours *ours, const char *text)
{
    bool found = ours->leaving && is_of(ours, ours->leaving, text);
    for (unsigned i = 0; i < published.nup && !found; i++)
        found = is_of(ours, published.up[i], text);
    return found;
}

/* What of `array` is ours, for the questions above. */
static struct ours look_for(char **array, const struct publication *leaving)
{
    struct ours ours = {.leaving = leaving};
    bool copied = false;
    for (size_t i = 0; array && entry(array, i); i++) {
        const char *text = entry(array, i);
        copied |=
            !strncmp(text, MARKER, strlen(MARKER)) && !is_ours(&ours, text);
    }
    ours.copied = copied;
    return ours;
}

/* The entries of an environment that are not ours, into `to`, which has room
 * for so many; their number. */
static size_t take_users(char **from, const struct ours *ours, char **to,
                         size_t room)
{
    size_t n = 0;
    for (size_t i = 0; from && entry(from, i); i++) {
        char *text = entry(from, i);
        if (is_ours(ours, text))
            continue;
        if (n < room)
            to[n] = text;
        n++;
    }
    return n;
}

static bool has_name(char **array, size_t n, const char *text)
{
    size_t length = name_length(text) + 1;
    for (size_t i = 0; i < n; i++)
        if (!strncmp(array[i], text, length))
            return true;
    return false;
}

static struct version *version_of(char **array)
{
    unsigned n =
        atomic_load_explicit(&published.nversions, memory_order_acquire);
    for (unsigned i = 0; i < n; i++)
        if (published.versions[i].array == array)
            return &published.versions[i];
    return NULL;
}

/* setenv() and unsetenv() of variables that exist change it in place. */
static bool is_as_made(const struct version *version)
{
    size_t i = 0;
    while (version->made[i] && entry(version->array, i) == version->made[i])
        i++;
    return !version->made[i] && !entry(version->array, i);
}

/* A version that was published before and is the same. */
static struct version *find_like(char **made, char **users)
{
    for (unsigned i = 0; i < published.nversions; i++) {
        struct version *version = &published.versions[i];
        size_t k = 0;
        while (made[k] && version->made[k] == made[k])
            k++;
        if (!made[k] && !version->made[k] && version->users == users &&
            is_as_made(version))
            return version;
    }
    return NULL;
}

static bool is_free_of_ours(const struct publication *new, char **made,
                            size_t n)
{
    for (int k = 0; k < PUBLICATION_TEXTS && new->texts[k]; k++)
        if (has_name(made, n, new->texts[k]))
            return false;
    return true;
}

static size_t append_ours(char **made, size_t n, bool any)
{
    for (unsigned i = 0; any && i < published.nup; i++) {
        struct publication *up = published.up[i];
        made[n++] = up->marker;
        for (int k = 0; k < PUBLICATION_TEXTS && up->texts[k]; k++)
            made[n++] = (char *)(uintptr_t)up->texts[k];
    }
    made[n] = NULL;
    return n;
}

static struct version *keep(char **made, size_t n, size_t room, char **users)
{
    struct version *version = &published.versions[published.nversions];
    version->made = made;
    version->array = made + room;
    version->users = users;
    memcpy((void *)version->array, (void *)made, (n + 1) * sizeof(*made));
    /* Release: a child forked now finds what it was made from. */
    atomic_fetch_add_explicit(&published.nversions, 1, memory_order_release);
    return version;
}

/* What an environment is to be made from. */
struct wanted {
    char **from;
    bool clean;   /* without ours: for the program, for good */
    char **users; /* else what it hides; NULL: none, as after clearenv() */
    struct ours ours;
    const struct publication *new; /* of what is up; or NULL */
};

/* NULL: no memory, or the program's own variables forbid it. */
static struct version *make(const struct wanted *wanted)
{
    enum { OURS = PUBLICATIONS * (PUBLICATION_TEXTS + 1) + 1, RESERVE = 16 };
    size_t n = take_users(wanted->from, &wanted->ours, NULL, 0);
    size_t room = n + OURS;
    char **made = malloc(2 * room * sizeof(*made));
    if (!made)
        return NULL;
    struct version *version = NULL;
    /* Else a thread is in setenv(). */
    if (take_users(wanted->from, &wanted->ours, made, n) == n &&
        (!wanted->new || is_free_of_ours(wanted->new, made, n))) {
        n = append_ours(made, n, !wanted->clean);
        if (!wanted->clean)
            version = find_like(made, wanted->users);
        if (!version &&
            published.nversions + (wanted->new ? RESERVE : 0) < VERSIONS)
            return keep(made, n, room,
                        wanted->clean ? made + room : wanted->users);
    }
    free((void *)made);
    return version;
}

static bool exchange(char **is, char **to)
{
    /* Release: who reads the pointer reads the entries. */
    return __atomic_compare_exchange_n(&__environ, &is, to, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Whether `now`, which was just replaced, is still what `then` was made from;
 * a thread may have been in setenv(). */
static bool is_unchanged(char **now, const struct ours *ours,
                         const struct version *then)
{
    size_t n = 0;
    for (size_t i = 0; now && entry(now, i); i++)
        if (!is_ours(ours, entry(now, i)) && then->made[n++] != entry(now, i))
            return false;
    return !then->made[n] || is_ours(ours, then->made[n]);
}

enum attempt { DONE, AGAIN, IN_VAIN };

static enum attempt replace(char **now, const struct wanted *wanted)
{
    const struct version *then = make(wanted);
    if (!then)
        return IN_VAIN;
    if (!exchange(now, then->array))
        return AGAIN;
    if (is_unchanged(now, &wanted->ours, then))
        return DONE;
    exchange(then->array, now);
    return AGAIN;
}

static enum attempt restore(const struct version *was)
{
    if (!exchange(was->array, was->users))
        return AGAIN;
    if (is_as_made(was))
        return DONE;
    exchange(was->users, was->array);
    return AGAIN;
}

static bool has_any(char **array, const struct ours *ours)
{
    size_t i = 0;
    while (array && entry(array, i) && !is_ours(ours, entry(array, i)))
        i++;
    return array && entry(array, i);
}

static enum attempt try_apply(const struct publication *new,
                              const struct publication *leaving)
{
    char **now = __atomic_load_n(&__environ, __ATOMIC_ACQUIRE);
    const struct version *was = version_of(now);
    if (was && !is_as_made(was))
        was = NULL; /* and from here on it is the program's */
    if (was && published.nup == 0)
        return restore(was);
    struct wanted wanted = {.from = now,
                            .users = was ? was->users : now,
                            .ours = look_for(now, leaving),
                            .new = new};
    if (!was && has_any(now, &wanted.ours)) {
        wanted.clean = true;
        if (published.nup == 0)
            return replace(now, &wanted);
        const struct version *clean = make(&wanted);
        if (!clean)
            return IN_VAIN;
        wanted.clean = false;
        wanted.users = clean->array;
    } else if (published.nup == 0) {
        return DONE;
    }
    return replace(now, &wanted);
}

static bool apply(const struct publication *new,
                  const struct publication *leaving)
{
    for (int i = 0; i < TRIES; i++) {
        enum attempt attempt = try_apply(new, leaving);
        if (attempt != AGAIN)
            return attempt == DONE;
    }
    return false;
}

/* In a child of fork(), which has one thread and may find the lock taken. */
static void forget(void)
{
    const struct version *is = version_of(__environ);
    if (is && is_as_made(is))
        __environ = is->users;
    else
        publish_clean();
}

/* Numbered, as shells keep one variable of each name. */
static void describe(struct publication *publication)
{
    char *marker = publication->marker;
    size_t room = sizeof(publication->marker);
    if (*marker)
        return;
    int n = snprintf(marker, room, MARKER "%u=", published.ndescribed++);
    for (int i = 0; i < PUBLICATION_TEXTS && publication->texts[i]; i++) {
        int length = (int)name_length(publication->texts[i]);
        if (n + length + 2 > (int)room)
            break;
        n += snprintf(marker + n, room - (size_t)n, "%.*s,", length,
                      publication->texts[i]);
    }
}

static bool bring_up(struct publication *publication)
{
    if (publication->is_up)
        return true;
    if (!published.follows_forks) {
        if (pthread_atfork(NULL, NULL, forget) != 0)
            return false;
        published.follows_forks = true;
    }
    if (published.nup == PUBLICATIONS)
        return false;
    describe(publication);
    published.up[published.nup++] = publication;
    publication->is_up = apply(publication, NULL);
    if (!publication->is_up)
        published.nup--;
    return publication->is_up;
}

bool publish(struct publication *publication)
{
    int saved = errno;
    lock_take(&published.lock);
    bool is_up = bring_up(publication);
    lock_give(&published.lock);
    errno = saved;
    return is_up;
}

static void take_down(struct publication *publication)
{
    unsigned i = 0;
    while (published.up[i] != publication)
        i++;
    published.up[i] = published.up[--published.nup];
    publication->is_up = false;
    apply(NULL, publication);
}

void publish_end(struct publication *publication)
{
    int saved = errno;
    lock_take(&published.lock);
    if (publication->is_up)
        take_down(publication);
    lock_give(&published.lock);
    errno = saved;
}

static void remove_name(char **array, const char *name, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; array[i]; i++)
        if (strncmp(array[i], name, n) != 0 || array[i][n] != '=')
            array[kept++] = array[i];
    array[kept] = NULL;
}

static void remove_names(char **array, const char *names)
{
    while (*names) {
        size_t n = strcspn(names, ",");
        if (n)
            remove_name(array, names, n);
        names += n + (names[n] == ',');
    }
}

/* The names in the first marker, which goes; NULL: there is none. */
static const char *take_marker(char **array)
{
    size_t i = 0;
    while (array && array[i] && strncmp(array[i], MARKER, strlen(MARKER)) != 0)
        i++;
    if (!array || !array[i])
        return NULL;
    const char *names = array[i] + strcspn(array[i], "=");
    do
        array[i] = array[i + 1];
    while (array[i++]);
    return names;
}

void publish_clean(void)
{
    const char *names;
    while ((names = take_marker(__environ)))
        remove_names(__environ, *names ? names + 1 : names);
}
