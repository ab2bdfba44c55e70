/*
 * The emulated driver's state: devices, contexts, streams with the work that waits in
 * them. Everything is behind one lock, which the entry points take (struct Call).
 */
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "block.h"
#include "memory.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace dk {

/* Handles are addresses that nothing lies at, and none is given out twice: a stale
 * one is always found out. */
uintptr_t new_handle();

template <class T, class Handle> class Table {
public:
  Handle add(std::unique_ptr<T> v) {
    Handle h = reinterpret_cast<Handle>(new_handle());
    v->handle = h;
    all_[h] = std::move(v);
    return h;
  }
  T *get(Handle h) {
    auto it = all_.find(h);
    return it == all_.end() ? nullptr : it->second.get();
  }
  std::unique_ptr<T> take(Handle h) {
    auto it = all_.find(h);
    std::unique_ptr<T> v = std::move(it->second);
    all_.erase(it);
    return v;
  }
  size_t size() const { return all_.size(); }
  std::map<Handle, std::unique_ptr<T>> &all() { return all_; }

private:
  std::map<Handle, std::unique_ptr<T>> all_;
};

struct Stream;

/* A point in a stream that an event marks. */
struct Ticket {
  Stream *stream;
  bool done = false;
  double ms = 0;
};

enum class Do { Kernel, Copy, Set, Mark, Wait, Call };
enum class Way { ToDevice, ToHost, OnDevice, Between };

struct Op {
  Do what;
  Launch launch{};
  int late = 0; /* a status that shows when the work runs */
  std::string late_text{};
  void *dst = nullptr;
  const void *src = nullptr;
  size_t bytes = 0;
  Way way{};
  uint32_t value = 0; /* of Set, in units of width bytes */
  int width = 1;
  std::shared_ptr<Ticket> ticket{};
  CUhostFn fn = nullptr;
  void *data = nullptr;
};

struct Context {
  CUcontext handle;
  int device;
  int retained;
  unsigned flags;
  int lost; /* the status that every call gives from now on */
  std::set<int> peers;
};

struct Stream {
  CUstream handle;
  Context *context;
  int priority;
  std::deque<Op> work;
  int asked; /* queries since the last progress */
};

struct Event {
  CUevent handle;
  Context *context;
  unsigned flags;
  std::shared_ptr<Ticket> last;
};

struct Module {
  CUmodule handle;
  Context *context;
  std::string image;
};

struct Function {
  CUfunction handle;
  Module *module;
  const Kernel *kernel;
  int dynamic; /* the most dynamic shared memory a launch may ask for */
};

struct Settings {
  uint64_t seed = 1;
  int devices = 1;
  size_t memory = size_t{1} << 30;
  int major = 8, minor = 0;
  int driver = 12080;
  bool peer = true;
  bool terminated = false;
  int early = 0; /* percent */
};

struct Effect {
  enum { None, Status, Hang, Slow } kind = None;
  int value = 0;
};

struct Injected {
  std::string call;
  int64_t from;
  bool always;
  Effect effect;
  int64_t count = 0;
};

struct Driver {
  std::recursive_mutex mu;
  bool configured = false;
  std::string complaint; /* about the environment's settings */
  bool initialised = false;
  Settings set;
  Rng rng;
  std::vector<Injected> faults;
  std::map<std::string, int64_t> count;
  Memory memory;
  std::vector<size_t> used; /* bytes of each device's memory */
  size_t peak = 0;
  std::vector<std::unique_ptr<Context>> primary; /* by device; null: not retained */
  Table<Stream, CUstream> streams;
  std::vector<std::unique_ptr<Stream>> orphans; /* destroyed, with work left */
  Table<Event, CUevent> events;
  Table<Module, CUmodule> modules;
  Table<Function, CUfunction> functions;

  /* The context of a handle, null if it is none. */
  Context *context(CUcontext h);
  size_t memory_live() const;
};

Driver &driver();

/* Sets the detail text and returns status. */
CUresult fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
const std::string &detail();

/* Counts a call and gives what is injected at it. */
Effect injected(const char *call);

/* "" or what is wrong with the settings. */
std::string configure(const char *spec);
void reset();

/* The calling thread's context, null if none or released. */
Context *current();
void set_current(CUcontext h);
CUcontext current_handle();
std::vector<CUcontext> &context_stack();

/* Whether a status ends its context. */
bool fatal(int status);

enum Need { Nothing, Init, Current };

/* One entry point's call: holds the lock; status other than 0 is returned at once. */
struct Call {
  std::unique_lock<std::recursive_mutex> lock;
  CUresult status = CUDA_SUCCESS;
  Context *ctx = nullptr; /* with Need Current */
  Call(const char *entry, Need need);
};

#define DK_API extern "C" __attribute__((visibility("default"))) CUresult
#define DK_CALL(need)                       \
  ::dk::Call call(__func__, ::dk::need);    \
  if (call.status != CUDA_SUCCESS) return call.status
/* Exports the name without suffix, too. */
#define DK_ALSO(name) asm(".globl " #name "\n.type " #name ", STT_FUNC\n.set " #name ", " #name "_v2")

/* queue.cc: work in streams. */

/* Puts op behind the stream's work. */
void enqueue(Stream *s, Op op);

/* Runs op now and marks its context as lost where it fails. */
CUresult perform(Op &op, Context *ctx);
/* Runs what lies before the ticket, and no more. */
CUresult run_until(const std::shared_ptr<Ticket> &t);
CUresult run_all(Stream *s);
/* All streams of a context, one operation at a time, in an order of chance. */
CUresult run_everything(Context *ctx);
/* Whether all is done; lets work go on a little so that whoever asks again sees an end. */
CUresult query(Stream *s, const Ticket *t);
size_t pending();

} // namespace dk
