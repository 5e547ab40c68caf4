/* Prints findings.def as the table of findings that README shows. */
#include <stdio.h>

#define BAD "bad"
#define WARN "warn"
#define INFO "info"

int main(void)
{
    puts("| finding | | what it says | what to do |\n|---|---|---|---|");
#define FINDING(id_, severity_, meaning_, next_) \
    puts("| `" #id_ "` | " severity_ " | " meaning_ " | " next_ " |");
#include "commtrace/findings.def"
    return 0;
}
