/* Streams and events. */
#include "device.h"

using namespace dk;

/* The stream of a handle in this context; the default streams are refused. */
static CUresult find(const char *what, CUstream h, const Context *ctx, Stream **s) {
  *s = driver().streams.get(h);
  if (*s && (*s)->context == ctx) return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_HANDLE, "%s: stream %p is none of this context; the default streams are refused", what, static_cast<void *>(h));
}

static CUresult create(const char *what, CUstream *stream, unsigned flags, int priority, Context *ctx) {
  if (flags != CU_STREAM_NON_BLOCKING)
    return fail(CUDA_ERROR_INVALID_VALUE, "%s: flags %u; only non-blocking streams are provided", what, flags);
  auto s = std::make_unique<Stream>();
  s->context = ctx;
  s->priority = priority;
  *stream = driver().streams.add(std::move(s));
  return CUDA_SUCCESS;
}

DK_API cuStreamCreate(CUstream *stream, unsigned int flags) {
  DK_CALL(Current);
  return create(__func__, stream, flags, 0, call.ctx);
}

DK_API cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
  DK_CALL(Current);
  return create(__func__, stream, flags, priority, call.ctx);
}

DK_API cuStreamGetPriority(CUstream stream, int *priority) {
  DK_CALL(Current);
  Stream *s;
  if (CUresult r = find(__func__, stream, call.ctx, &s)) return r;
  *priority = s->priority;
  return CUDA_SUCCESS;
}

DK_API cuStreamGetFlags(CUstream stream, unsigned int *flags) {
  DK_CALL(Current);
  Stream *s;
  if (CUresult r = find(__func__, stream, call.ctx, &s)) return r;
  *flags = CU_STREAM_NON_BLOCKING;
  return CUDA_SUCCESS;
}

DK_API cuStreamDestroy(CUstream stream) {
  DK_CALL(Current);
  Driver &d = driver();
  Stream *s;
  if (CUresult r = find(__func__, stream, call.ctx, &s)) return r;
  auto owned = d.streams.take(stream);
  if (!owned->work.empty()) d.orphans.push_back(std::move(owned)); /* its work still runs, late */
  return CUDA_SUCCESS;
}
DK_ALSO(cuStreamDestroy);

DK_API cuStreamSynchronize(CUstream stream) {
  DK_CALL(Current);
  Stream *s;
  if (CUresult r = find(__func__, stream, call.ctx, &s)) return r;
  return run_all(s);
}

DK_API cuStreamQuery(CUstream stream) {
  DK_CALL(Current);
  Stream *s;
  if (CUresult r = find(__func__, stream, call.ctx, &s)) return r;
  return query(s, nullptr);
}

DK_API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  DK_CALL(Current);
  Stream *s;
  if (CUresult r = find(__func__, stream, call.ctx, &s)) return r;
  Event *e = driver().events.get(event);
  if (!e) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such event", __func__);
  if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "%s: flags %u, must be 0", __func__, flags);
  if (!e->last || e->last->done) return CUDA_SUCCESS;
  Op op{Do::Wait};
  op.ticket = e->last;
  enqueue(s, std::move(op));
  return CUDA_SUCCESS;
}

DK_API cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *data) {
  DK_CALL(Current);
  Stream *s;
  if (CUresult r = find(__func__, stream, call.ctx, &s)) return r;
  Op op{Do::Call};
  op.fn = fn;
  op.data = data;
  enqueue(s, std::move(op));
  return CUDA_SUCCESS;
}

DK_API cuEventCreate(CUevent *event, unsigned int flags) {
  DK_CALL(Current);
  if (flags > 7) return fail(CUDA_ERROR_INVALID_VALUE, "%s: flags %u", __func__, flags);
  auto e = std::make_unique<Event>();
  e->context = call.ctx;
  e->flags = flags;
  *event = driver().events.add(std::move(e));
  return CUDA_SUCCESS;
}

DK_API cuEventDestroy(CUevent event) {
  DK_CALL(Current);
  if (!driver().events.get(event)) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such event", __func__);
  driver().events.take(event);
  return CUDA_SUCCESS;
}
DK_ALSO(cuEventDestroy);

DK_API cuEventRecord(CUevent event, CUstream stream) {
  DK_CALL(Current);
  Stream *s;
  if (CUresult r = find(__func__, stream, call.ctx, &s)) return r;
  Event *e = driver().events.get(event);
  if (!e || e->context != call.ctx) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such event in this context", __func__);
  e->last = std::make_shared<Ticket>();
  e->last->stream = s;
  Op op{Do::Mark};
  op.ticket = e->last;
  enqueue(s, std::move(op));
  return CUDA_SUCCESS;
}

DK_API cuEventQuery(CUevent event) {
  DK_CALL(Current);
  Event *e = driver().events.get(event);
  if (!e) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such event", __func__);
  if (!e->last || e->last->done) return CUDA_SUCCESS;
  return query(e->last->stream, e->last.get());
}

DK_API cuEventSynchronize(CUevent event) {
  DK_CALL(Current);
  Event *e = driver().events.get(event);
  if (!e) return fail(CUDA_ERROR_INVALID_HANDLE, "%s: no such event", __func__);
  if (!e->last) return CUDA_SUCCESS;
  std::shared_ptr<Ticket> t = e->last;
  return run_until(t);
}

DK_API cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
  DK_CALL(Current);
  Event *a = driver().events.get(start), *b = driver().events.get(end);
  if (!a || !b || !a->last || !b->last || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
    return fail(CUDA_ERROR_INVALID_HANDLE, "%s: needs two recorded events with timing", __func__);
  if (!a->last->done || !b->last->done) return fail(CUDA_ERROR_NOT_READY, "%s: the events' work is not done", __func__);
  *ms = static_cast<float>(b->last->ms - a->last->ms);
  return CUDA_SUCCESS;
}
