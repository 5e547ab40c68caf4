// Throws through frames that call NCCL, and through NCCL itself.
#include "calls.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

static float data[16];
static comm *communicator;

namespace job
{
template <typename T> struct Layer {
    FRAME void reduce(T count, const std::string &what)
    {
        if (ncclAllReduce(data, data, static_cast<size_t>(count), FLOAT, SUM,
                          communicator, nullptr) != 0)
            std::abort();
        if (!what.empty())
            throw std::runtime_error(what);
    }
};
} // namespace job

struct Guard {
    ~Guard()
    {
        std::puts("unwound");
    }
};

FRAME static void step(const std::string &what)
{
    Guard guard;
    job::Layer<int>().reduce(4, what);
    NO_TAIL_CALL;
}

static void back()
{
    Guard guard;
    throw std::runtime_error("from inside NCCL");
}

int main()
{
    unique_id id = {{1}};
    if (ncclCommInitRank(&communicator, 2, id, 0) != 0)
        return 2;
    for (int i = 0; i < 3; i++) {
        try {
            step(i % 2 ? "" : "after the call");
        } catch (const std::exception &e) {
            std::printf("caught %s\n", e.what());
        }
        try {
            void (*function)() = back;
            ncclAllReduce(reinterpret_cast<void *>(function), data, 4,
                          CALLS_BACK, SUM, communicator, nullptr);
        } catch (const std::exception &e) {
            std::printf("caught %s\n", e.what());
        }
    }
    ncclCommDestroy(communicator);
    return 0;
}
