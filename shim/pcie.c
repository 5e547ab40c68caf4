#include "pcie.h"

#include "rows.h"
#include "sysfs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hexadecimal digits, at least one and at most so many, and what follows. */
static const char *parse_hex(const char *text, int most, char after,
                             uint64_t *number)
{
    int n = 0;
    *number = 0;
    for (; text && n < most && isxdigit((unsigned char)*text); n++, text++)
        *number =
            *number << 4 |
            (uint64_t)(*text <= '9' ? *text - '0' : (*text & 0x5f) - 'A' + 10);
    return n && (!after || *text == after) ? text + (after != 0) : NULL;
}

/* False when the text up to end is not domain:bus:device.function. */
static bool parse(const char *text, const char *end, uint64_t *number)
{
    uint64_t domain, bus, device, function;
    text = parse_hex(text, 8, ':', &domain);
    text = parse_hex(text, 2, ':', &bus);
    text = parse_hex(text, 2, '.', &device);
    text = parse_hex(text, 1, 0, &function);
    *number = domain << 16 | bus << 8 | (device & 31) << 3 | (function & 7);
    return text && text == end;
}

static void format(uint64_t number, char address[PCIE_ADDRESS])
{
    snprintf(address, PCIE_ADDRESS, "%04x:%02x:%02x.%x",
             (unsigned)(number >> 16), (unsigned)(number >> 8 & 255),
             (unsigned)(number >> 3 & 31), (unsigned)(number & 7));
}

bool pcie_address(const char *from, char address[PCIE_ADDRESS])
{
    uint64_t number;
    bool is_one = parse(from, from + strlen(from), &number);
    *address = 0;
    if (is_one)
        format(number, address);
    return is_one;
}

/* The components of a path that are addresses. */
static void set_chain(const char *path, struct pcie *pcie)
{
    uint64_t number;
    pcie->depth = 0;
    while (*path) {
        const char *end = path + strcspn(path, "/");
        if (parse(path, end, &number) && pcie->depth < PCIE_DEPTH)
            pcie->chain[pcie->depth++] = number;
        path = *end ? end + 1 : end;
    }
}

static struct known {
    struct known *next;
    char address[PCIE_ADDRESS];
    struct pcie pcie;
} * all;

static const struct pcie nowhere = {.numa = CT_NULL};

static struct known *recall(const char *address)
{
    struct known *known = all;
    while (known && strcmp(known->address, address) != 0)
        known = known->next;
    return known;
}

/* NULL without memory. */
static struct known *learn(const char *address)
{
    struct known *known = calloc(1, sizeof(*known));
    if (!known)
        return NULL;
    snprintf(known->address, sizeof(known->address), "%s", address);
    known->pcie.numa = sysfs_number("bus/pci/devices/%s/numa_node", address);
    known->next = all;
    return all = known;
}

const struct pcie *pcie_find(const char *address)
{
    char target[SYSFS_PATH];
    struct known *known = recall(address);
    if (known || !*address || !(known = learn(address)))
        return known ? &known->pcie : &nowhere;
    if (sysfs_link(target, "bus/pci/devices/%s", address))
        set_chain(target, &known->pcie);
    return &known->pcie;
}

const struct pcie *pcie_behind(const char *target, char address[PCIE_ADDRESS])
{
    struct pcie pcie;
    *address = 0;
    set_chain(target, &pcie);
    if (!pcie.depth)
        return &nowhere;
    format(pcie.chain[pcie.depth - 1], address);
    struct known *known = recall(address);
    if (!known && (known = learn(address))) {
        pcie.numa = known->pcie.numa;
        known->pcie = pcie;
    }
    return known ? &known->pcie : &nowhere;
}

/* A switch shows as an upstream port with downstream ports below it. So, as in
 * NCCL, every other function above a device is a switch, and the one that is
 * left over the root port. Numbered from the device; -1: the CPU. */
static int above(const struct pcie *pcie, int n)
{
    int at = pcie->depth - 1 - 2 * n;
    return at >= 0 ? at : -1;
}

static int shared_switches(const struct pcie *a, const struct pcie *b)
{
    for (int i = 1; above(a, i) >= 0; i++)
        for (int j = 1; above(b, j) >= 0; j++)
            if (a->chain[above(a, i)] == b->chain[above(b, j)])
                return i + j - 1;
    return 0;
}

const char *pcie_way(const struct pcie *a, const struct pcie *b)
{
    int switches = shared_switches(a, b);
    if (!a->depth || !b->depth)
        return NULL;
    if (switches)
        return switches == 1 ? "PIX" : "PXB";
    if (a->numa == CT_NULL || b->numa == CT_NULL)
        return NULL;
    return a->numa == b->numa ? "PHB" : "SYS";
}
