#include "fiber.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

/*
 * dk_switch(save, to) keeps what the ABI says a call keeps, stores the stack pointer
 * and goes on at another one. A new fiber's stack holds dk_enter as return address.
 */
extern "C" void dk_switch(void **save, void *to);
extern "C" void dk_enter();

#if defined(__x86_64__)
asm(R"(
.text
.globl dk_switch
.hidden dk_switch
.type dk_switch, @function
dk_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
.size dk_switch, .-dk_switch
)");
static constexpr int kSaved = 6; /* words below the return address */
#elif defined(__aarch64__)
asm(R"(
.text
.globl dk_switch
.hidden dk_switch
.type dk_switch, %function
dk_switch:
	sub sp, sp, #160
	stp x19, x20, [sp, #0]
	stp x21, x22, [sp, #16]
	stp x23, x24, [sp, #32]
	stp x25, x26, [sp, #48]
	stp x27, x28, [sp, #64]
	stp d8, d9, [sp, #80]
	stp d10, d11, [sp, #96]
	stp d12, d13, [sp, #112]
	stp d14, d15, [sp, #128]
	stp x29, x30, [sp, #144]
	mov x9, sp
	str x9, [x0]
	mov sp, x1
	ldp x19, x20, [sp, #0]
	ldp x21, x22, [sp, #16]
	ldp x23, x24, [sp, #32]
	ldp x25, x26, [sp, #48]
	ldp x27, x28, [sp, #64]
	ldp d8, d9, [sp, #80]
	ldp d10, d11, [sp, #96]
	ldp d12, d13, [sp, #112]
	ldp d14, d15, [sp, #128]
	ldp x29, x30, [sp, #144]
	add sp, sp, #160
	ret
.size dk_switch, .-dk_switch
)");
#else
#error "the emulated device runs on amd64 and arm64"
#endif

namespace dk {
namespace {

constexpr size_t kStack = 128 << 10; /* usable bytes */
constexpr size_t kGuard = 64 << 10;  /* below them; wider than any frame */

void *main_sp;
Fiber *running;
bool ended;
pthread_t owner; /* the thread that runs fibers, while running is set */
void (*entry_body)(void *);
void *entry_arg;
Fault last;
std::vector<char *> pool;
Describe describe;
Locate locate;
struct sigaction before_segv, before_bus, before_fpe;

/* The lowest usable byte of a stack, or null where the system gives no memory. */
char *take_stack() {
  if (!pool.empty()) {
    char *s = pool.back();
    pool.pop_back();
    return s;
  }
  void *m = mmap(nullptr, kStack + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) return nullptr;
  mprotect(m, kGuard, PROT_NONE);
  return static_cast<char *>(m) + kGuard;
}

[[noreturn]] void leave() {
  void *dead;
  ended = true;
  dk_switch(&dead, main_sp);
  __builtin_unreachable();
}

uintptr_t fault_addr;
int fault_signal;

/* Where a thread of the device goes on after a bad access: at the top of its stack. */
[[noreturn]] void landed() {
  char what[200] = "", place[120] = "", text[400];
  uintptr_t low = reinterpret_cast<uintptr_t>(running->stack);
  if (locate) locate(place, sizeof place);
  if (fault_signal == SIGFPE) {
    snprintf(text, sizeof text, "division by zero or arithmetic trap%s", place);
    fiber_raise(719, text);
  }
  if (fault_addr >= low - kGuard && fault_addr < low) {
    snprintf(text, sizeof text, "stack of more than %zu bytes%s", kStack, place);
    fiber_raise(719, text);
  }
  if (describe) describe(fault_addr, what, sizeof what);
  snprintf(text, sizeof text, "bad access at 0x%zx%s%s", static_cast<size_t>(fault_addr), what, place);
  fiber_raise(700, text);
}

struct sigaction *before(int sig) { return sig == SIGSEGV ? &before_segv : sig == SIGBUS ? &before_bus : &before_fpe; }

/* Faults of device work end it; all others are left to whoever handled them before. */
void on_signal(int sig, siginfo_t *info, void *context) {
  if (running && pthread_equal(owner, pthread_self())) {
    fault_addr = reinterpret_cast<uintptr_t>(info->si_addr);
    fault_signal = sig;
    auto *uc = static_cast<ucontext_t *>(context);
    uintptr_t top = (reinterpret_cast<uintptr_t>(running->stack) + kStack) & ~uintptr_t{15};
#if defined(__x86_64__)
    uc->uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(top - 8); /* as after a call */
    uc->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(&landed));
#else
    uc->uc_mcontext.sp = top;
    uc->uc_mcontext.pc = reinterpret_cast<uintptr_t>(&landed);
#endif
    return;
  }
  struct sigaction *old = before(sig);
  if (old->sa_flags & SA_SIGINFO) {
    old->sa_sigaction(sig, info, context);
  } else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
    struct sigaction dfl = {};
    dfl.sa_handler = SIG_DFL;
    sigaction(sig, &dfl, nullptr); /* the instruction faults again and ends the process */
  } else {
    old->sa_handler(sig);
  }
}

void handle(int sig) {
  struct sigaction sa = {};
  sigaction(sig, nullptr, before(sig));
  sa.sa_sigaction = on_signal;
  sa.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sa.sa_mask = before(sig)->sa_mask;
  sigaction(sig, &sa, nullptr);
}

/* Handlers need a stack that still works when a fiber's is exhausted. */
void prepare_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    handle(SIGSEGV);
    handle(SIGBUS);
    handle(SIGFPE);
  });
  stack_t have;
  if (sigaltstack(nullptr, &have) == 0 && !(have.ss_flags & SS_DISABLE)) return;
  struct Alt {
    char *mem = static_cast<char *>(malloc(64 << 10));
    ~Alt() {
      stack_t off = {};
      off.ss_flags = SS_DISABLE;
      sigaltstack(&off, nullptr);
      free(mem);
    }
  };
  thread_local Alt alt;
  stack_t ss = {};
  ss.ss_sp = alt.mem;
  ss.ss_size = 64 << 10;
  sigaltstack(&ss, nullptr);
}

void forget(Fiber *f) {
  if (f->stack) pool.push_back(static_cast<char *>(f->stack));
  f->stack = f->sp = nullptr;
}

} // namespace

extern "C" void dk_enter() {
  entry_body(entry_arg);
  leave();
}

void fiber_run(Fiber *f, void (*body)(void *), void *arg) {
  if (!f->stack) {
    f->stack = take_stack();
    if (!f->stack) {
      last.status = 2;
      snprintf(last.text, sizeof last.text, "no host memory for a stack");
      return;
    }
    auto *top = reinterpret_cast<uintptr_t *>((reinterpret_cast<uintptr_t>(f->stack) + kStack) & ~uintptr_t{15});
#if defined(__x86_64__)
    *--top = 0; /* dk_enter starts as if called */
    *--top = reinterpret_cast<uintptr_t>(&dk_enter);
    top -= kSaved;
    memset(top, 0, kSaved * sizeof *top);
#else
    top -= 20;
    memset(top, 0, 20 * sizeof *top);
    top[19] = reinterpret_cast<uintptr_t>(&dk_enter);
#endif
    f->sp = top;
    entry_body = body;
    entry_arg = arg;
  }
  ended = false;
  running = f;
  dk_switch(&main_sp, f->sp);
  running = nullptr;
  if (ended) forget(f);
}

void fiber_wait() { dk_switch(&running->sp, main_sp); }

void fiber_raise(int status, const char *text) {
  last.status = status;
  snprintf(last.text, sizeof last.text, "%s", text);
  leave();
}

Fault *fault() { return &last; }

void fault_clear() {
  prepare_thread();
  owner = pthread_self();
  last.status = 0;
}
void fiber_drop(Fiber *f) { forget(f); }
void describe_with(Describe d) { describe = d; }
void locate_with(Locate l) { locate = l; }

int guarded(void (*body)(void *), void *arg) {
  Fiber f = {};
  fault_clear();
  fiber_run(&f, body, arg);
  return last.status;
}

} // namespace dk
