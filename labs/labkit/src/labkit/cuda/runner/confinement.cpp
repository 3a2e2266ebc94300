#include "confinement.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
static const uint32_t machine = AUDIT_ARCH_X86_64;
static const uint32_t first_of_another_interface = 0x40000000;  // x32: the same calls under other numbers
#else
static const uint32_t machine = AUDIT_ARCH_AARCH64;
static const uint32_t first_of_another_interface = 0xffffffff;
#endif

namespace {

const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;

// A filter as Linux reads it: instructions that load a word of the call, compare it, skip some, or decide.
class Filter {
public:
    void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset); }
    void load_argument(int number) {
        load(offsetof(seccomp_data, args) + 8 * number);  // the lower half: both machines are little-endian
    }
    void decide(uint32_t verdict) { add(BPF_RET | BPF_K, verdict); }
    void decide_if(uint16_t comparison, uint32_t value, uint32_t verdict) {
        branch(comparison, value, 0, 1).decide(verdict);
    }
    void decide_unless(uint16_t comparison, uint32_t value, uint32_t verdict) {
        branch(comparison, value, 1, 0).decide(verdict);
    }
    // What follows, up to the next `end_of_call`, is for one system call alone.
    void begin_call(uint32_t number) {
        branch(BPF_JEQ, number, 0, 0);
        begun_ = code_.size() - 1;
    }
    void end_of_call(uint32_t verdict) {
        decide(verdict);
        code_[begun_].jf = (uint8_t)(code_.size() - 1 - begun_);
    }
    void install() {
        sock_fprog program{(unsigned short)code_.size(), code_.data()};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return;
        // it shall not slow the processor's guesses down: what would be guarded is this process's own
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
    }

private:
    void add(uint16_t operation, uint32_t value) { code_.push_back({operation, 0, 0, value}); }
    Filter& branch(uint16_t comparison, uint32_t value, uint8_t skip_if, uint8_t skip_if_not) {
        code_.push_back({(uint16_t)(BPF_JMP | comparison | BPF_K), skip_if, skip_if_not, value});
        return *this;
    }
    std::vector<sock_filter> code_;
    size_t begun_ = 0;
};

void allow_memory(Filter& filter) {
    filter.begin_call(SYS_mmap);
    filter.load_argument(2);
    filter.decide_if(BPF_JSET, PROT_EXEC, refuse);
    filter.load_argument(3);
    filter.decide_unless(BPF_JSET, MAP_ANONYMOUS, refuse);
    filter.end_of_call(SECCOMP_RET_ALLOW);
    filter.begin_call(SYS_mprotect);
    filter.load_argument(2);
    filter.decide_if(BPF_JSET, PROT_EXEC, refuse);
    filter.end_of_call(SECCOMP_RET_ALLOW);
    for (uint32_t number : {SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk})
        filter.decide_if(BPF_JEQ, number, SECCOMP_RET_ALLOW);
}

void allow_writing(Filter& filter, int report_descriptor) {
    filter.begin_call(SYS_write);
    filter.load_argument(0);
    for (int descriptor : {STDOUT_FILENO, STDERR_FILENO, report_descriptor})
        filter.decide_if(BPF_JEQ, (uint32_t)descriptor, SECCOMP_RET_ALLOW);
    filter.end_of_call(refuse);
}

}  // namespace

void confine(int report_descriptor) {
    Filter filter;
    filter.load(offsetof(seccomp_data, arch));
    filter.decide_unless(BPF_JEQ, machine, SECCOMP_RET_KILL_PROCESS);
    filter.load(offsetof(seccomp_data, nr));
    filter.decide_if(BPF_JGE, first_of_another_interface, refuse);
    for (uint32_t number : {SYS_rt_sigreturn, SYS_clock_gettime, SYS_exit, SYS_exit_group})
        filter.decide_if(BPF_JEQ, number, SECCOMP_RET_ALLOW);
    allow_memory(filter);
    allow_writing(filter, report_descriptor);
    filter.decide(refuse);
    filter.install();
}
