package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"dorylus/engine"
	"dorylus/engine/inproc"
	"dorylus/engine/sink"
)

// deviceReport is the listener of one session of several. The first one's passes its
// events on; another keeps sums of its tasks, for the first to hear in the end.
type deviceReport struct {
	t    *together
	rank int
	to   engine.Listener
	port *inproc.Port

	lines bytes.Buffer
	sums  *sink.JSONL
	bad   error
	ages  engine.Ages // of the rows that this device has read, by whose they are
}

func newDeviceReport(t *together, rank int, to engine.Listener) *deviceReport {
	r := &deviceReport{t: t, rank: rank, to: to, port: t.rows.Port(rank)}
	r.sums = sink.NewJSONL(&r.lines, false, func(err error) { r.bad = err })
	return r
}

// Event implements engine.Listener.
func (r *deviceReport) Event(e engine.Event) {
	d, done := e.(engine.TaskDone)
	if done {
		r.ages = r.ages.Add(d.AgeFrom)
	}
	if r.rank > 0 {
		if done {
			r.sums.Event(e)
		}
		return
	}
	if s, ok := e.(engine.RunStart); ok {
		s.Device, s.Threads = strings.Join(r.t.names, ","), s.Threads*len(r.t.names)
		e = s
	}
	r.to.Event(e)
}

// report is Cluster.Report.
func (r *deviceReport) report() ([]byte, error) {
	sent := r.port.Sent()
	done := engine.ServerDone{
		Role: engine.DeviceRole, Rank: r.rank, Address: r.t.names[r.rank], PeakMem: PeakMemory(),
		RowValues: sent.Values, RowBytes: sent.Values, RowPeer: sent.Peer, RowAgeFrom: r.ages,
	}
	if r.rank == 0 {
		r.to.Event(done)
		return nil, nil
	}
	r.sums.Event(done)
	if err := errors.Join(r.sums.Close(), r.bad); err != nil {
		return nil, fmt.Errorf("report to %s: %w", r.t.names[0], err)
	}
	return r.lines.Bytes(), nil
}

// hear is Cluster.Hear.
func (r *deviceReport) hear(_ int, report []byte) error {
	return sink.ReadEvents(bytes.NewReader(report), r.to)
}
