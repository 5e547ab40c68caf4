#include <stdio.h>

#include "trace/links.h"

const char *const ct_link_names[CT_LINK_COUNT] = {
#define LINK(id_, name_, ...) [CT_LINK_##id_] = (name_),
#include "commtrace/links.def"
};

void ct_link_text(enum ct_link link, int64_t speed, char *text, size_t size)
{
    if (speed <= 0)
        snprintf(text, size, "%s", ct_link_names[link]);
    else if (!ct_link_is_network(link))
        snprintf(text, size, "%s %d", ct_link_names[link], (int)speed);
    else if (speed < 1000)
        snprintf(text, size, "%s %dM", ct_link_names[link], (int)speed);
    else
        snprintf(text, size, "%s %.4gG", ct_link_names[link],
                 (double)speed / 1e3);
}
