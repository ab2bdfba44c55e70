/*
 * Work in streams. Nothing runs when it is enqueued: a stream's operations run when
 * somebody waits for them, and of other streams only what events put before. So a
 * missing wait reads old or poisoned bytes every time, not once in a thousand runs.
 */
#include "device.h"
#include "fiber.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace dk {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void describe_address(uintptr_t addr, char *text, size_t size) {
  Memory &m = driver().memory;
  if (addr < 4096) {
    snprintf(text, size, " (null pointer)");
    return;
  }
  const Region *near = nullptr; /* whose guard page or neighbouring bytes these are */
  for (auto &r : m.all()) {
    const Region &v = r.second;
    const uintptr_t map = reinterpret_cast<uintptr_t>(v.map);
    if (v.map && addr + 4096 >= map && addr < map + v.mapped + 4096) near = &v;
    if (near && addr < map + v.mapped) break;
  }
  if (near && addr >= near->base) {
    snprintf(text, size, " (%zu bytes after the start of an allocation of %zu bytes)", addr - near->base, near->size);
  } else if (near) {
    snprintf(text, size, " (%zu bytes before an allocation of %zu bytes)", near->base - addr, near->size);
  } else if (m.ours(addr)) {
    snprintf(text, size, " (memory that was freed, or none)");
  }
}

void copy_body(void *p) {
  Op *op = static_cast<Op *>(p);
  memmove(op->dst, op->src, op->bytes);
}

void set_body(void *p) {
  Op *op = static_cast<Op *>(p);
  char *to = static_cast<char *>(op->dst);
  for (size_t i = 0; i < op->bytes; i += static_cast<size_t>(op->width))
    memcpy(to + i, &op->value, static_cast<size_t>(op->width));
}

/* The status injected into the device's part of an operation. */
int late_fault(const char *name) {
  Effect e = injected(name);
  if (e.kind == Effect::Slow) {
    timespec t{e.value / 1000, e.value % 1000 * 1000000L};
    nanosleep(&t, nullptr);
  }
  if (e.kind == Effect::Hang)
    for (;;) {
      timespec t{3600, 0};
      nanosleep(&t, nullptr);
    }
  if (e.kind != Effect::Status) return 0;
  fail(e.value, "%s: injected on the device", name);
  return e.value;
}

int perform_kernel(Op &op) {
  int status = late_fault("kernel");
  if (!status) status = late_fault(op.launch.kernel->name);
  if (status) return status;
  driver().count["launches"]++;
  driver().count[std::string("launches/") + op.launch.kernel->name]++;
  status = run(op.launch, driver().rng);
  if (status) fail(status, "%s", fault()->text);
  return status;
}

int perform_copy(Op &op) {
  if (int status = late_fault("copy")) return status;
  static const char *const names[] = {"bytes_to_device", "bytes_to_host", "bytes_on_device", "bytes_between_devices"};
  driver().count[names[static_cast<int>(op.way)]] += static_cast<int64_t>(op.bytes);
  locate_with(nullptr);
  int status = guarded(copy_body, &op);
  if (status) fail(status, "copy of %zu bytes from %p to %p: %s", op.bytes, op.src, op.dst, fault()->text);
  return status;
}

int perform_set(Op &op) {
  if (int status = late_fault("memset")) return status;
  locate_with(nullptr);
  int status = guarded(set_body, &op);
  if (status) fail(status, "memset of %zu bytes at %p: %s", op.bytes, op.dst, fault()->text);
  return status;
}

/* What a kernel wrote beside its allocation, within the page. */
int check_edges(int device) {
  for (auto &r : driver().memory.all())
    if (r.second.device == device && !driver().memory.intact(r.second)) {
      fail(CUDA_ERROR_ILLEGAL_ADDRESS, "bytes beside the allocation of %zu bytes at 0x%zx were written", r.second.size,
           static_cast<size_t>(r.second.base));
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  return 0;
}

CUresult step(Stream *s) {
  s->asked = 0;
  if (s->work.front().what == Do::Wait) {
    std::shared_ptr<Ticket> t = s->work.front().ticket;
    if (CUresult r = run_until(t)) return r;
    s->work.pop_front();
    return CUDA_SUCCESS;
  }
  Op op = std::move(s->work.front());
  s->work.pop_front();
  return perform(op, s->context);
}

} // namespace

CUresult perform(Op &op, Context *ctx) {
  if (ctx->lost) return static_cast<CUresult>(ctx->lost);
  describe_with(describe_address);
  int status = op.late;
  if (status) fail(status, "%s", op.late_text.c_str());
  if (!status) switch (op.what) {
    case Do::Kernel: status = perform_kernel(op); break;
    case Do::Copy: status = perform_copy(op); break;
    case Do::Set: status = perform_set(op); break;
    case Do::Mark:
      op.ticket->done = true;
      op.ticket->ms = now_ms();
      break;
    case Do::Wait: break;
    case Do::Call: op.fn(op.data); break;
    }
  if (!status && op.what == Do::Kernel) status = check_edges(ctx->device);
  if (status) ctx->lost = status;
  return static_cast<CUresult>(status);
}

CUresult run_until(const std::shared_ptr<Ticket> &t) {
  while (!t->done) {
    Stream *s = t->stream;
    if (s->context->lost) return static_cast<CUresult>(s->context->lost);
    if (CUresult r = step(s)) return r;
  }
  return CUDA_SUCCESS;
}

CUresult run_all(Stream *s) {
  while (!s->work.empty())
    if (CUresult r = step(s)) return r;
  return CUDA_SUCCESS;
}

/* A stream of ctx that has work, by chance; null if none has. */
static Stream *some_busy(Context *ctx) {
  Driver &d = driver();
  std::vector<Stream *> busy;
  for (auto &s : d.streams.all())
    if (s.second->context == ctx && !s.second->work.empty()) busy.push_back(s.second.get());
  for (auto &s : d.orphans)
    if (s->context == ctx && !s->work.empty()) busy.push_back(s.get());
  return busy.empty() ? nullptr : busy[d.rng.below(static_cast<uint32_t>(busy.size()))];
}

void enqueue(Stream *s, Op op) {
  s->work.push_back(std::move(op));
  Driver &d = driver();
  if (d.set.early && static_cast<int>(d.rng.below(100)) < d.set.early)
    if (Stream *busy = some_busy(s->context)) step(busy); /* a fault shows at the next call */
}

CUresult run_everything(Context *ctx) {
  while (Stream *s = some_busy(ctx))
    if (CUresult r = step(s)) return r;
  return CUDA_SUCCESS;
}

CUresult query(Stream *s, const Ticket *t) {
  if (t ? t->done : s->work.empty()) return CUDA_SUCCESS;
  if (s->context->lost) return static_cast<CUresult>(s->context->lost);
  if (s->asked++ >= 2)
    if (CUresult r = step(s)) return r;
  return (t ? t->done : s->work.empty()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

size_t pending() {
  size_t n = 0;
  for (auto &s : driver().streams.all()) n += s.second->work.size();
  for (auto &s : driver().orphans) n += s->work.size();
  return n;
}

} // namespace dk
