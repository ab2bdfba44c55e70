package sim

// Result is what was played.
type Result struct {
	// Ends are the seconds from the start at which each epoch was over: all intervals had
	// finished it and all servers had its update.
	Ends []float64
	// Steps are the seconds that tasks of each step took, over all epochs and servers, on
	// cores or remote workers.
	Steps   []float64
	Updates float64 // seconds of the parameter servers, over all epochs
	Servers []Use
}

// Use is what one server did, over all epochs.
type Use struct {
	// Busy are the seconds of its cores with tasks and messages together, Packing those
	// with messages alone, Waiting those with nothing to do. Remote are those of its
	// remote workers.
	Busy, Packing, Waiting, Remote float64
	// Sending and Receiving are the seconds for which its link was in use.
	Sending, Receiving float64
	// Bytes and messages to and from other servers, heads included, and to and from remote
	// workers.
	Sent, Received, Messages   int64
	RemoteSent, RemoteReceived int64

	busy, packing, remote, sending, receiving instant
}

// Epoch is the seconds of an epoch once the pipeline is full: the first one, which has
// nothing to overlap with, is left out where there are others.
func (r *Result) Epoch() float64 {
	n := len(r.Ends)
	if n == 1 {
		return r.Ends[0]
	}
	return (r.Ends[n-1] - r.Ends[0]) / float64(n-1)
}

// Seconds is the end of the last epoch.
func (r *Result) Seconds() float64 {
	end := 0.0
	for _, t := range r.Ends {
		end = max(end, t)
	}
	return end
}

func (r *run) result() *Result {
	out := &Result{Updates: r.updating.seconds()}
	for _, t := range r.ends {
		out.Ends = append(out.Ends, t.seconds())
	}
	for _, t := range r.steps {
		out.Steps = append(out.Steps, t.seconds())
	}
	end := out.Seconds()
	for _, s := range r.servers {
		u := s.use
		u.Busy, u.Packing, u.Remote = u.busy.seconds(), u.packing.seconds(), u.remote.seconds()
		u.Sending, u.Receiving = u.sending.seconds(), u.receiving.seconds()
		u.Waiting = max(float64(s.cores)*end-u.Busy, 0)
		u.busy, u.packing, u.remote, u.sending, u.receiving = 0, 0, 0, 0, 0
		out.Servers = append(out.Servers, u)
	}
	return out
}
