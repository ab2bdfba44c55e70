package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/engine/dataset"
	"dorylus/engine/graph"
	"dorylus/engine/metric"
	"dorylus/engine/model"
	"dorylus/engine/params"
	"dorylus/engine/sched"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// Options are all that one run in one process needs.
type Options struct {
	Config engine.Config // complete and valid
	Seed   uint64        // of this run
	Store  *store.Store
	Split  dataset.Split // in store rows
	Device kernels.Device
	// Backend runs the tensor tasks; nil: the device itself.
	Backend  engine.Backend
	Listener engine.Listener
	// From is where to go on; nil: from the start.
	From *State
	// Save, if not nil, keeps a checkpoint. It is called every
	// Config.CheckpointEvery epochs, at the end, and when ctx ends.
	Save func(*State) error
	// Stop, if not nil, is asked after each epoch, its evaluation included; an answer
	// other than "" ends the run for that reason, with a checkpoint.
	Stop    func() string
	Rates   *engine.Rates // by which the run is billed; nil: not priced
	Version string        // of the engine, for the records
	// Cluster has the other graph servers; nil: this process has all of the graph. From,
	// Save and Stop are then those of server 0.
	Cluster *Cluster

	planning *planning // of PlanMemory; nil: the run is one
}

// State is a run between two epochs: all that another process needs to go on as
// if nothing had happened.
type State struct {
	Params *params.State
	Model  model.Config
	Seed   uint64
	Best   Best
}

// Best is the best validation so far, and its weights.
type Best struct {
	Epoch           int // 0-based; -1: none yet
	Val, Test       float64
	Train, ValLoss  float64
	Weights         []*kernels.Mat // by parameter, in host memory; nil: none yet
	SinceBest, Done int            // evaluations since the best one, and in all
}

// Result is what a run has made.
type Result struct {
	Reason string // "epochs", "patience", "target", "interrupted", or what Stop said
	State  *State
	Specs  []model.ParamSpec
	Epochs int // epochs done in all
	// Logits of the model that the run delivers, the best by validation, for all
	// vertices in the user's order; nil if it was interrupted.
	Logits *kernels.Mat
	// WeightsSHA256 is over the final weights, PredictionsSHA256 over the
	// predicted classes (int32, little endian) in the user's order.
	WeightsSHA256, PredictionsSHA256 string
}

// session is one run: the trainer and what it is made of.
type session struct {
	opt    Options
	in     *inputs
	tr     *trainer
	server Server
	specs  []model.ParamSpec
	best   Best
	reason string
	// stopped is why the group has ended the run.
	stopped string
	start   time.Time
	saved   int // epochs in the last checkpoint
}

// Train runs to the end, to a stop, or until ctx ends, which is not an error: the
// result says "interrupted".
func Train(ctx context.Context, opt Options) (*Result, error) {
	s := &session{opt: opt, start: time.Now(), best: Best{Epoch: -1}, saved: -1}
	defer s.close()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	res, err := s.run(ctx)
	if err == nil {
		err = s.reports(ctx)
	}
	if a, ok := s.server.(interface{ Abort(error) }); ok && err != nil {
		a.Abort(err)
	}
	if i, ok := s.server.(interface{ Interrupted() }); ok && err == nil && res.Reason == "interrupted" {
		i.Interrupted()
	}
	if err == nil && res.Reason == "epochs" {
		opt.planning.done(opt.Device, s.extra())
	}
	done := engine.RunDone{Reason: "failed", Seconds: time.Since(s.start).Seconds(), PeakMem: peakMemory()}
	if err != nil {
		done.Error = err.Error()
	} else {
		done.Reason, done.Epochs = res.Reason, res.Epochs
		done.Weights, done.Predicts = res.WeightsSHA256, res.PredictionsSHA256
	}
	s.tr.tell()
	opt.Listener.Event(done)
	return res, err
}

// open builds the program, binds it twice (training, evaluation) and starts the
// parameter server.
func (s *session) open(ctx context.Context) error {
	c, st := &s.opt.Config, s.opt.Store
	if err := checkData(st, s.opt.Split); err != nil {
		return err
	}
	own := kernels.Span{Hi: st.Meta.Vertices}
	if cl := s.opt.Cluster; cl != nil {
		own = graph.BlockSpan(&st.Meta, cl.Blocks[cl.Group.Rank()])
	}
	if err := checkWeights(c.Model, st, own); err != nil {
		return err
	}
	cfg, err := ModelConfig(c, st)
	if err != nil {
		return err
	}
	loss, err := lossOf(c, st, s.opt.Split)
	if err != nil {
		return err
	}
	prog, err := cfg.Build()
	if err != nil {
		return err
	}
	s.specs = prog.Params
	cl := s.opt.Cluster
	t := &trainer{
		cluster: cl, ask: s.ask, stopped: func(reason string) { s.stopped = reason },
		cfg: trainerConfig{
			Epochs: c.Epochs, Sync: c.Pipeline != "async", Staleness: c.Staleness, Wait: c.AsyncWait, EvalEvery: c.EvalEvery, Start: s.start,
		},
		listener: s.opt.Listener, backend: s.opt.Backend, onEpoch: s.onEpoch, onEval: s.onEval,
	}
	s.tr = t
	part, err := s.join(ctx)
	if err != nil {
		return err
	}
	if t.backend == nil {
		t.backend = backend.NewLocal(s.opt.planning.scratch(s.opt.Device))
	}
	if t.workers, err = newWorkers(s.opt.Device, threads(c)); err != nil {
		return err
	}
	if s.in, err = newInputs(s.opt.Device, st); err != nil {
		return err
	}
	t.hosted = s.in.hosted
	classW, err := s.in.put(loss.classW)
	if err != nil {
		return err
	}
	count := intervals(c, st)
	t.train, err = newPass(s.in, t.workers, passConfig{
		prog: prog, sparse: cfg.Sparse, seeds: s.opt.Split.Train, all: !s.opt.Config.PruneRows, train: true, intervals: count,
		shared: !t.cfg.Sync, latched: !t.cfg.Sync || cl != nil, seed: s.opt.Seed, part: part,
		labels: trainLabels(st, s.opt.Split), multi: st.Multi, classW: classW, lossScale: loss.scale,
	})
	if err != nil {
		return fmt.Errorf("prepare training: %w", err)
	}
	t.eval, err = newEvaluator(s.in, t.workers, passConfig{
		prog: prog, sparse: cfg.Sparse, intervals: count, latched: cl != nil, part: part,
	}, s.opt.Split, c.Metric)
	if err != nil {
		return err
	}
	t.eval.cluster = cl
	if cl != nil {
		if err := t.listen(); err != nil {
			return err
		}
	}
	if b, ok := t.backend.(engine.Binder); ok {
		if err := b.Bind(ctx, t.job(cfg)); err != nil {
			return fmt.Errorf("start %s: %w", t.backend.Name(), err)
		}
	}
	if err := s.serve(ctx); err != nil {
		return err
	}
	t.machine, err = sched.New(sched.Config{
		Intervals: len(t.train.intervals), Own: t.train.own, Steps: t.train.schedule(),
		First: t.cfg.First, Epochs: t.cfg.Epochs, Sync: t.cfg.Sync, Staleness: t.cfg.Staleness, Fresh: !t.cfg.Sync, Hold: 1,
	})
	if err != nil {
		return err
	}
	s.announce(cfg)
	return nil
}

// serve starts the parameter server, from scratch or from a checkpoint.
func (s *session) serve(ctx context.Context) error {
	c, t := &s.opt.Config, s.tr
	pc := params.Config{
		Specs: s.specs, Optim: optimConfig(c), Blocks: t.train.plan.Blocks, Intervals: len(t.train.intervals), Device: s.opt.Device,
	}
	if from := s.opt.From; from != nil {
		pc.From = from.Params
		t.cfg.First = from.Params.Version
		s.best = from.Best
		if t.cfg.First > c.Epochs {
			return fmt.Errorf("resume: the checkpoint has %d epochs, more than --epochs %d: ask for more epochs", t.cfg.First, c.Epochs)
		}
		s.saved = t.cfg.First
	} else {
		pc.Init = params.InitParams(s.specs, s.opt.Seed)
	}
	if cl := s.opt.Cluster; cl != nil {
		if err := s.agreeOnStart(ctx); err != nil {
			return err
		}
		job := ParamJob{Config: pc, Blocks: t.train.plan.Own, Intervals: t.train.own}
		if !cl.leads() {
			job.Config.Init, job.Config.From, job.Config.FirstEpoch = nil, nil, t.cfg.First
		}
		var err error
		s.server, err = cl.Connect(ctx, job)
		t.params = s.server
		return err
	}
	server, err := params.New(pc)
	if err != nil {
		return err
	}
	s.server, t.params = server, server
	return nil
}

// job is the run as a backend that works elsewhere sees it.
func (t *trainer) job(cfg model.Config) *engine.Job {
	passes := [engine.Passes]*pass{engine.Training: t.train, engine.Evaluation: t.eval.pass}
	j := &engine.Job{Model: cfg, Program: t.train.prog, Blocks: func(k engine.Pass, interval int) []*model.Ctx {
		own := passes[k].own
		if interval < own.Lo || interval >= own.Hi {
			return nil
		}
		return passes[k].ctxs[interval-own.Lo]
	}}
	for k, p := range passes {
		j.Intervals[k] = len(p.intervals)
	}
	return j
}

func (s *session) announce(cfg model.Config) {
	c, st, sp := &s.opt.Config, s.opt.Store, &s.opt.Split
	var values int64
	for _, p := range s.specs {
		if p.Stat {
			continue
		}
		values += int64(p.Rows) * int64(p.Cols)
	}
	s.opt.Listener.Event(engine.RunStart{
		Time: s.start, Mode: c.Mode, Model: c.Model, Dataset: st.Meta.Name, Seed: s.opt.Seed,
		Vertices: st.Meta.Vertices, Edges: st.Meta.Edges, Features: cfg.Features, Classes: cfg.Classes,
		TrainRows: len(sp.Train), ValRows: len(sp.Val), TestRows: len(sp.Test), Parameters: values,
		Pipeline: c.Pipeline, Staleness: c.Staleness, Intervals: len(s.tr.train.intervals), Partitions: s.tr.cfg.Partitions, Threads: s.tr.workers.n,
		Epochs: c.Epochs, FirstEpoch: s.tr.cfg.First, Device: s.opt.Device.Name(), Version: s.opt.Version,
		Plan: s.tr.train.describe(), Rates: s.opt.Rates,
	})
}

func (s *session) run(ctx context.Context) (*Result, error) {
	if err := s.tr.run(ctx); err != nil {
		return nil, err
	}
	end, state, err := s.end(ctx)
	if err != nil {
		return nil, err
	}
	res := &Result{Reason: end.Reason, State: state, Specs: s.specs, Epochs: end.Version, WeightsSHA256: end.Weights}
	if end.Reason == "interrupted" {
		return res, nil
	}
	if err := s.predict(ctx, end, res); err != nil {
		return nil, err
	}
	return res, nil
}

// ending is how training has ended, the same on all servers.
type ending struct {
	Reason  string
	Version int
	Weights string // SHA-256
	Deliver [][]float32
}

// end takes stock of a training that is over: all servers have stopped, the last
// checkpoint is written. The state is server 0's.
func (s *session) end(ctx context.Context) (*ending, *State, error) {
	cl := s.opt.Cluster
	if err := s.meet(ctx, "the end of training"); err != nil {
		return nil, nil, err
	}
	end := &ending{}
	var state *State
	if cl.leads() {
		var err error
		if state, err = s.state(); err != nil {
			return nil, nil, err
		}
		// A run that stopped may have made versions that it has not heard of yet.
		for s.tr.epochs < state.Params.Version {
			u, ok := <-s.server.Updates()
			if !ok {
				return nil, nil, fmt.Errorf("the parameter server closed before it announced version %d", state.Params.Version)
			}
			s.tr.note(u)
		}
		end.Reason, end.Version = s.reason, state.Params.Version
		switch {
		case end.Reason != "":
		case s.stopped != "":
			end.Reason = s.stopped
		case end.Version >= s.opt.Config.Epochs:
			end.Reason = "epochs"
		default:
			end.Reason = "interrupted"
		}
		end.Weights = params.SHA256(s.specs, state.Params.Weights)
		if err := s.save(state); err != nil {
			return nil, nil, err
		}
		for _, m := range state.BestWeights(false) {
			end.Deliver = append(end.Deliver, m.Host)
		}
	}
	if cl == nil {
		return end, state, nil
	}
	return end, state, shareFrom0(context.WithoutCancel(ctx), cl, "the end", end)
}

// predict computes what the run delivers: the logits of all vertices, at server 0.
func (s *session) predict(ctx context.Context, end *ending, res *Result) error {
	ctx = context.WithoutCancel(ctx)
	var weights []*kernels.Mat
	for p, spec := range s.specs {
		if p >= len(end.Deliver) || len(end.Deliver[p]) != spec.Rows*spec.Cols {
			return fmt.Errorf("predict: the weights of %s have not come whole", spec.Name)
		}
		weights = append(weights, kernels.FromSlice(spec.Rows, spec.Cols, end.Deliver[p]))
	}
	ev := s.tr.eval
	s.tr.stopped = nil // all have ended training for a reason that they agree on: nothing is left to stop
	weights, err := s.in.putAll(weights)
	if err == nil {
		err = s.tr.forward(ctx, engine.Weights{Mats: weights})
	}
	if err == nil {
		ev.logits, err = ev.collect(ctx, "the logits of the best weights", ev.logits)
	}
	if err != nil {
		return fmt.Errorf("predict with the best weights: %w", err)
	}
	if !s.opt.Cluster.leads() {
		return nil
	}
	res.Logits = userOrder(ev.logits, s.opt.Store.Order)
	res.PredictionsSHA256 = PredictionsSHA256(res.Logits, s.opt.Store.Multi != nil)
	if len(s.opt.Split.Test) > 0 {
		epoch := s.best.Epoch
		if epoch < 0 { // stopped before the first evaluation: the final weights are delivered
			epoch = res.Epochs - 1
		}
		counts, err := ev.classes(epoch, s.opt.Store.Meta.ClassNames)
		if err != nil {
			return fmt.Errorf("count the test vertices by class: %w", err)
		}
		s.opt.Listener.Event(counts)
	}
	return nil
}

// onEpoch is called when an epoch's update has been made.
func (s *session) onEpoch(u engine.Update) (bool, error) {
	if s.tr.evalDueAfter(u.Epoch) {
		return false, nil // onEval decides and saves, with what it has found
	}
	if s.opt.Cluster == nil { // several servers stop where all of them hear of it, after an evaluation
		if s.reason = s.ask(u.Epoch); s.reason != "" {
			return true, nil
		}
	}
	return false, s.saveIfDue(u.Epoch)
}

// ask is opt.Stop's reason to end the run after epoch, "" for none and after the last.
func (s *session) ask(epoch int) string {
	if s.opt.Stop != nil && epoch+1 < s.opt.Config.Epochs {
		return s.opt.Stop()
	}
	return ""
}

// onEval keeps the best weights and decides about stopping.
func (s *session) onEval(e engine.Evaluated, w engine.Weights, told string) (bool, error) {
	s.opt.planning.evaluated(s.opt.Device, e.Epoch)
	c := &s.opt.Config
	b := &s.best
	b.Done++
	if b.Epoch < 0 || e.Val > b.Val || math.IsNaN(e.Val) {
		mats, err := s.server.Copy(w)
		if err != nil {
			return false, err
		}
		*b = Best{Epoch: e.Epoch, Val: e.Val, Test: e.Test, Train: e.Train, ValLoss: e.ValLoss, Weights: mats, Done: b.Done}
		e.Best = true
	} else {
		b.SinceBest++
	}
	s.opt.Listener.Event(e)
	switch {
	case c.TargetAccuracy > 0 && e.Val >= c.TargetAccuracy:
		s.reason = "target"
	case c.Patience > 0 && (b.SinceBest)*c.EvalEvery >= c.Patience:
		s.reason = "patience"
	default:
		s.reason = told
	}
	if s.reason != "" {
		return true, nil
	}
	return false, s.saveIfDue(e.Epoch)
}

func (s *session) saveIfDue(epoch int) error {
	every := s.opt.Config.CheckpointEvery
	if s.opt.Save == nil || !s.opt.Cluster.leads() || every <= 0 || (epoch+1)%every != 0 || epoch+1 >= s.opt.Config.Epochs {
		return nil
	}
	st, err := s.state()
	if err != nil {
		return err
	}
	return s.save(st)
}

func (s *session) save(st *State) error {
	if s.opt.Save == nil || s.saved == st.Params.Version {
		return nil
	}
	if err := s.opt.Save(st); err != nil {
		return fmt.Errorf("write a checkpoint after epoch %d: %w", st.Params.Version, err)
	}
	s.saved = st.Params.Version
	return nil
}

func (s *session) state() (*State, error) {
	cfg, err := ModelConfig(&s.opt.Config, s.opt.Store)
	if err != nil {
		return nil, err
	}
	p, err := s.server.Snapshot()
	return &State{Params: p, Model: cfg, Seed: s.opt.Seed, Best: s.best}, err
}

func (s *session) close() {
	if t := s.tr; t != nil {
		t.inbox.close()
		if s.opt.Backend == nil && t.backend != nil {
			t.backend.Close()
		}
		if t.eval != nil {
			t.eval.pass.close()
		}
		if t.train != nil {
			t.train.close()
		}
		if t.workers != nil {
			t.workers.close()
		}
	}
	if s.server != nil {
		s.server.Close()
	}
	if s.in != nil {
		s.in.close()
	}
}

// newEvaluator walks all rows; see evaluator.
func newEvaluator(in *inputs, w *workers, c passConfig, sp dataset.Split, measure string) (*evaluator, error) {
	p, err := newPass(in, w, c)
	if err != nil {
		return nil, fmt.Errorf("prepare evaluation: %w", err)
	}
	st := in.st
	ev := &evaluator{
		pass: p, role: roleOf(st.Meta.Vertices, sp), truth: metric.Truth{Labels: st.Labels},
		rows: [roles][]int32{roleTrain: sp.Train, roleVal: sp.Val, roleTest: sp.Test}, parts: make([]tally, p.plan.Blocks),
	}
	if st.Multi != nil {
		ev.truth = metric.Truth{Sets: st.Multi}
	}
	ev.own = p.full[p.prog.Output]
	if !in.hosted {
		n, cols := ev.own.Rows, ev.own.Cols
		ev.own = kernels.FromSlice(n, cols, make([]float32, n*cols))
	}
	if c.part == nil {
		ev.logits = ev.own
	}
	ev.metric = ev.truth.Name(measure)
	if err := ev.schedule(0); err != nil {
		p.close()
		return nil, err
	}
	return ev, nil
}

// PredictionsSHA256 is over the predicted classes, int32 little endian, row by
// row; of multi-label data over one 1 or 0 per class, whether its logit is above 0.
func PredictionsSHA256(logits *kernels.Mat, multi bool) string {
	h := sha256.New()
	var row []byte
	for v := range logits.Rows {
		row = row[:0]
		if multi {
			for _, z := range logits.Row(v) {
				has := uint32(0)
				if z > 0 {
					has = 1
				}
				row = binary.LittleEndian.AppendUint32(row, has)
			}
		} else {
			row = binary.LittleEndian.AppendUint32(row, uint32(metric.Argmax(logits.Row(v))))
		}
		h.Write(row)
	}
	return hex.EncodeToString(h.Sum(nil))
}
