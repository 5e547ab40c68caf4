/* The command line. */
#include "train.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

#define MAX_STEPS 100000

enum {
    OPT_TP = 1,
    OPT_PP,
    OPT_DP,
    OPT_ORDER,
    OPT_LAYERS,
    OPT_MICRO,
    OPT_BATCH,
    OPT_SEQ,
    OPT_HIDDEN,
    OPT_DTYPE,
    OPT_STEPS,
    OPT_COMPUTE,
    OPT_LOG,
    OPT_SUMMARY,
    OPT_HELP
};

static const struct option long_options[] = {
    {"tp", required_argument, NULL, OPT_TP},
    {"pp", required_argument, NULL, OPT_PP},
    {"dp", required_argument, NULL, OPT_DP},
    {"order", required_argument, NULL, OPT_ORDER},
    {"layers", required_argument, NULL, OPT_LAYERS},
    {"micro-batches", required_argument, NULL, OPT_MICRO},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"seq", required_argument, NULL, OPT_SEQ},
    {"hidden", required_argument, NULL, OPT_HIDDEN},
    {"dtype", required_argument, NULL, OPT_DTYPE},
    {"steps", required_argument, NULL, OPT_STEPS},
    {"compute-us", required_argument, NULL, OPT_COMPUTE},
    {"log", required_argument, NULL, OPT_LOG},
    {"summary", no_argument, NULL, OPT_SUMMARY},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

static void usage(FILE *out)
{
    fputs("usage: train3d [options], one process per rank\n"
          "  --tp N --pp N --dp N   sizes; their product is the world (1 1 1)\n"
          "  --order NAMES          innermost first (tp-pp-dp)\n"
          "  --layers N             of the whole model (4)\n"
          "  --micro-batches N      per step (4)\n"
          "  --batch N --seq N --hidden N   of a micro-batch (1 128 256)\n"
          "  --dtype fp32|fp16|bf16 (fp32)\n"
          "  --steps N              (4)\n"
          "  --compute-us N         one layer forward; backward is twice that"
          " (1000)\n"
          "  --log DIR              one line per call into DIR/rankN.log\n"
          "  --summary              median time of a step\n"
          "example: launch -n 8 -- train3d --tp 2 --pp 2 --dp 2 --summary\n",
          out);
}

static ncclDataType_t parse_type(const char *text)
{
    if (!strcmp(text, "fp32"))
        return ncclFloat32;
    if (!strcmp(text, "fp16"))
        return ncclFloat16;
    if (!strcmp(text, "bf16"))
        return ncclBfloat16;
    die("--dtype: '%s' is none of fp32, fp16, bf16", text);
}

static int parse_positive(const char *option, const char *text)
{
    long value = parse_count(option, text);

    if (value < 1 || value > 1 << 24)
        die("%s: %ld is out of range", option, value);
    return (int)value;
}

static void set_option(struct options *o, int option, const char *name)
{
    int *numbers[] = {
        [OPT_TP] = &o->layout.size[TP],
        [OPT_PP] = &o->layout.size[PP],
        [OPT_DP] = &o->layout.size[DP],
        [OPT_LAYERS] = &o->layers,
        [OPT_MICRO] = &o->micro_batches,
        [OPT_BATCH] = &o->batch,
        [OPT_SEQ] = &o->seq,
        [OPT_HIDDEN] = &o->hidden,
        [OPT_STEPS] = &o->steps,
        [OPT_HELP] = NULL,
    };

    switch (option) {
    case OPT_ORDER:
        o->order = optarg;
        break;
    case OPT_DTYPE:
        o->type = parse_type(optarg);
        break;
    case OPT_COMPUTE:
        o->compute_us = parse_count(name, optarg);
        break;
    case OPT_LOG:
        o->log_dir = optarg;
        break;
    case OPT_SUMMARY:
        o->summary = 1;
        break;
    default:
        *numbers[option] = parse_positive(name, optarg);
    }
}

void train_check_options(struct options *o, int world)
{
    if (layout_parse_order(&o->layout, o->order))
        die("--order: '%s' does not name tp, pp and dp once each", o->order);
    if (layout_world(&o->layout) != world)
        die("tp * pp * dp is %d, but there are %d ranks",
            layout_world(&o->layout), world);
    if (o->layers % o->layout.size[PP])
        die("%d layers do not fill %d stages evenly", o->layers,
            o->layout.size[PP]);
    if (o->hidden % o->layout.size[TP])
        die("hidden size %d is no multiple of tp %d", o->hidden,
            o->layout.size[TP]);
    if (o->layout.size[TP] > PATTERN_MAX_RANKS ||
        o->layout.size[DP] > PATTERN_MAX_RANKS)
        die("more than %d ranks in a group", PATTERN_MAX_RANKS);
    if (o->steps > MAX_STEPS)
        die("more than %d steps", MAX_STEPS);
}

void train_options(struct options *o, int argc, char **argv)
{
    int option;
    int index = 0;

    while ((option = getopt_long(argc, argv, "", long_options, &index)) != -1) {
        if (option == '?') {
            usage(stderr);
            exit(2);
        }
        if (option == OPT_HELP) {
            usage(stdout);
            exit(0);
        }
        set_option(o, option, long_options[index].name);
    }
    if (optind < argc)
        die("'%s' is no option", argv[optind]);
}
