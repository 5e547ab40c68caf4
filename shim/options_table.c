/* Prints config.def as the table of options that README shows. */
#include <stdio.h>

#define RANGE_TEXT(low_, high_)
#define RANGE_NUMBER(low_, high_) printf(" From %d to %d.", low_, high_)
#define RANGE_SWITCH(low_, high_)
#define RANGE_TIMING(low_, high_)
#define RANGE_STACKS(low_, high_)
#define RANGE_NCCL_LOG(low_, high_)
#define RANGE_PROFILER(low_, high_)

int main(void)
{
    puts("| variable | default | meaning |\n|---|---|---|");
#define CONFIG(id_, variable_, kind_, default_, low_, high_, meaning_)       \
    printf("| `%s` | %s | %s", variable_, *default_ ? "`" default_ "`" : "", \
           meaning_);                                                        \
    RANGE_##kind_(low_, high_);                                              \
    puts(" |");
#include "commtrace/config.def"
    return 0;
}
