/*
 * One screen that holds the job against the textbook: tensor-parallel volume,
 * pipeline idle, the bandwidth that each role needs.
 */
#include "report/sections.h"
#include "report/seed.h"

void section_seed(struct out *out, const struct view *view,
                  const struct families *families)
{
    out_title(out, "TEXTBOOK AND THIS JOB",
              "busbw in GB/s, of the largest message; alpha %: latency");
    out_object(out, "seed");
    seed_volume(out, view, families);
    seed_idle(out, view);
    seed_bandwidth(out, view, families);
    out_object_end(out);
}
