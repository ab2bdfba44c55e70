package pipeline

import (
	"context"
	"fmt"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/engine/params"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Server is the parameter server, or all of them, as a run sees it.
//
// One that can be lost has two more methods: Err() error says why Updates was closed
// before Close, and Abort(error), before Close, that the run has failed. Interrupted(), of
// one that has it, says before Close that the run has stopped before its end.
type Server interface {
	engine.Params
	// Snapshot copies the newest weights and the moments that go with them to host
	// memory. Only server 0 of a cluster may ask.
	Snapshot() (*params.State, error)
	// Copy copies fetched weights, which must still be pinned, to host memory.
	Copy(w engine.Weights) ([]*kernels.Mat, error)
}

// Cluster is what makes a run one of several graph servers that train together. All of
// them run the same session on their own partition, and decide alike, from numbers that
// they have in common. Server 0 writes the checkpoints and tells of the run.
type Cluster struct {
	Group    engine.Group
	Exchange engine.Exchanger
	// Blocks are the partitions, by rank: runs of blocks, some of them empty.
	Blocks []task.Range
	// Connect reaches the parameter servers.
	Connect func(ctx context.Context, j ParamJob) (Server, error)
	// Spent is what this server has spent since it was called last, so that server 0, whose
	// Hear takes it after each evaluation, knows what the run costs while it goes on. nil:
	// it says all of it in the end.
	Spent func() ([]byte, error)
	// Report is what this server has to say in the end, and Hear takes what the others
	// have said, at server 0, before the run is done.
	Report func() ([]byte, error)
	Hear   func(rank int, report []byte) error
}

// ParamJob is what parameter servers have to know of the run.
type ParamJob struct {
	// Config is complete at server 0; the others have neither Init nor From.
	Config params.Config
	// Blocks and Intervals are those of the graph server that connects.
	Blocks, Intervals task.Range
}

// leads says whether this process is the one that writes and tells.
func (c *Cluster) leads() bool { return c == nil || c.Group.Rank() == 0 }

// join makes this session one of the cluster's and is its share of the graph; nil: all.
func (s *session) join(ctx context.Context) (*graph.Part, error) {
	cl, t := s.opt.Cluster, s.tr
	t.cfg.Partitions = 1
	if cl == nil {
		return nil, nil
	}
	t.exchange = cl.Exchange
	t.cfg.Partition, t.cfg.Partitions = cl.Group.Rank(), cl.Group.Size()
	if len(cl.Blocks) != cl.Group.Size() {
		return nil, fmt.Errorf("%d partitions for %d graph servers", len(cl.Blocks), cl.Group.Size())
	}
	if err := s.sameRun(ctx); err != nil {
		return nil, err
	}
	return &graph.Part{
		Blocks: cl.Blocks[cl.Group.Rank()], Rank: cl.Group.Rank(),
		Gather: func(key string, mine []byte) ([][]byte, error) { return cl.Group.Gather(ctx, key, mine) },
	}, nil
}

// sameRun compares what must be the same on all servers.
func (s *session) sameRun(ctx context.Context) error {
	cl := s.opt.Cluster
	id, err := Identify(&s.opt.Config, s.opt.Store, s.opt.Split, s.opt.Seed)
	if err != nil {
		return err
	}
	mine := []string{s.opt.Version, id.Dataset, id.Fingerprint, fmt.Sprint(id.Seed), string(id.Config), fmt.Sprint(s.opt.Config.Epochs, s.opt.Config.EvalEvery, s.opt.Config.Staleness, s.opt.Config.Patience, s.opt.Config.TargetAccuracy), fmt.Sprint(cl.Blocks)}
	data, err := encodeGob(mine)
	if err != nil {
		return err
	}
	all, err := cl.Group.Gather(ctx, "settings", data)
	if err != nil {
		return err
	}
	what := []string{"version of the program", "data", "contents of the store", "seed", "settings of model and training", "epochs, evaluation and stopping", "partitions"}
	for rank, data := range all {
		var theirs []string
		if err := decodeGob(data, &theirs); err != nil || len(theirs) != len(mine) {
			return fmt.Errorf("compare settings with server %d: %d of %d came, %v", rank, len(theirs), len(mine), err)
		}
		for i := range mine {
			if mine[i] != theirs[i] {
				return fmt.Errorf("server %d has another %s than server %d: %s, not %s: start all servers with the same flags and store",
					rank, what[i], cl.Group.Rank(), theirs[i], mine[i])
			}
		}
	}
	return nil
}

// start is where a run begins, the same on all servers.
type start struct {
	First, Saved int
	Best         Best
	Weights      [][]float32
}

// agreeOnStart gives all servers what server 0 has read from its checkpoint.
func (s *session) agreeOnStart(ctx context.Context) error {
	st := start{First: s.tr.cfg.First, Saved: s.saved, Best: s.best}
	for _, m := range s.best.Weights {
		st.Weights = append(st.Weights, m.Host)
	}
	st.Best.Weights = nil
	if err := shareFrom0(ctx, s.opt.Cluster, "start", &st); err != nil || s.opt.Cluster.leads() {
		return err
	}
	s.tr.cfg.First, s.saved, s.best = st.First, st.Saved, st.Best
	for p, w := range st.Weights {
		if p >= len(s.specs) || len(w) != s.specs[p].Rows*s.specs[p].Cols {
			return fmt.Errorf("the best weights of the checkpoint at server 0 are not those of this model")
		}
		s.best.Weights = append(s.best.Weights, kernels.FromSlice(s.specs[p].Rows, s.specs[p].Cols, w))
	}
	return nil
}

// meet waits until all servers have come to the same point.
func (s *session) meet(ctx context.Context, where string) error {
	cl := s.opt.Cluster
	if cl == nil {
		return nil
	}
	_, err := cl.Group.Gather(context.WithoutCancel(ctx), where, nil)
	return err
}

// reports brings what the other servers have to say to server 0.
func (s *session) reports(ctx context.Context) error {
	cl := s.opt.Cluster
	if cl == nil || cl.Report == nil {
		return nil
	}
	mine, err := cl.Report()
	if err != nil {
		return err
	}
	all, err := cl.Group.Collect(context.WithoutCancel(ctx), "reports", mine)
	if err != nil {
		return err
	}
	for rank, report := range all {
		if rank == cl.Group.Rank() {
			continue
		}
		if err := cl.Hear(rank, report); err != nil {
			return fmt.Errorf("report of server %d: %w", rank, err)
		}
	}
	return nil
}
