/* What doctor found out, one row each; the format is chosen last. */
#ifndef COMMTRACE_DOCTOR_FACTS_H
#define COMMTRACE_DOCTOR_FACTS_H

struct out;

enum fact_status {
    FACT_GOOD, /* as it should be, or only good to know */
    FACT_NOTE, /* something will be missing, or may be meant otherwise */
    FACT_BAD   /* this has to change */
};

struct fact {
    const char *what;
    const char *status;
    char text[700];
};

#define FACTS_MOST 40

struct facts {
    struct fact fact[FACTS_MOST];
    int n;
};

__attribute__((format(printf, 4, 5))) void facts_add(struct facts *facts,
                                                     const char *what,
                                                     enum fact_status status,
                                                     const char *format, ...);

void facts_print(struct out *out, const struct facts *facts);

#endif
