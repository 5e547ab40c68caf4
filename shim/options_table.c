/* Prints config.def as the table of options that README shows. */
#include <stdio.h>

int main(void)
{
    puts("| variable | default | meaning |\n|---|---|---|");
#define CONFIG(id_, variable_, kind_, default_, low_, high_, meaning_) \
    printf("| `%s` | %s | %s |\n", variable_,                          \
           *default_ ? "`" default_ "`" : "", meaning_);
#include "commtrace/config.def"
    return 0;
}
