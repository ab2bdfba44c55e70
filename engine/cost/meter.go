package cost

import (
	"fmt"
	"reflect"
	"strings"

	"dorylus/engine"
)

// Meter folds the events of a run into its bill so far. The events of a resumed run
// may follow those of the run it goes on with: what was spent on epochs that are run
// again stays spent. The zero Meter is ready.
type Meter struct {
	rates *engine.Rates
	use   Usage                     // of this segment, but for held
	held  map[int]engine.LambdaHeld // by server

	segments    int
	pastSeconds float64
	past        Bill
	mixed       bool // segments had different prices
}

// Event implements engine.Listener.
func (m *Meter) Event(e engine.Event) {
	switch e := e.(type) {
	case engine.RunStart:
		m.begin(e.Rates)
	case engine.EpochDone:
		m.pass(e.At, e.Took)
	case engine.Evaluated:
		m.pass(e.At, e.Took)
	case engine.Checkpointed:
		m.pass(0, e.Took)
	case engine.RunDone:
		m.use.Seconds = e.Seconds
	case engine.LambdaUsed:
		if m.use.LambdaMBms == nil {
			m.use.LambdaMBms = map[string]int64{}
		}
		m.use.LambdaMBms[e.Arch] += e.BilledMS * int64(e.MemoryMB)
		m.use.Requests++
		m.use.Streamed += e.Streamed
		m.use.Logged += e.Logged
		m.use.Modelled = m.use.Modelled || e.Modelled
	case engine.LambdaHeld:
		if m.held == nil {
			m.held = map[int]engine.LambdaHeld{}
		}
		m.held[e.Server] = e
	case engine.Moved:
		m.use.Zone += e.Zone
		m.use.NAT += e.NAT
	}
}

// begin opens a segment.
func (m *Meter) begin(rates *engine.Rates) {
	if m.segments > 0 {
		m.mixed = m.mixed || !reflect.DeepEqual(m.rates, rates)
		m.past, m.pastSeconds = m.Bill(), m.Seconds()
	}
	m.segments++
	m.rates, m.use, m.held = rates, Usage{Modelled: m.use.Modelled}, nil
}

// pass moves the time to at, or by took where at is not known.
func (m *Meter) pass(at, took float64) {
	if at > 0 {
		m.use.Seconds = max(m.use.Seconds, at)
		return
	}
	m.use.Seconds += took
}

// Bill is what the run has cost so far, all segments together.
func (m *Meter) Bill() Bill {
	use := m.use
	for _, h := range m.held { // sums of integers: in any order
		use = use.with(h)
	}
	b := use.Bill(m.rates)
	if m.segments > 1 {
		b = m.past.Plus(b)
	}
	return b
}

// Seconds is the time of the run so far, all segments together.
func (m *Meter) Seconds() float64 { return m.pastSeconds + m.use.Seconds }

// Note says in one sentence by what prices, of what date, and what is left out.
func (m *Meter) Note() string {
	b := m.Bill()
	if m.rates == nil {
		return "not priced: the run was started without prices"
	}
	parts := []string{"time measured here, priced as " + servers(m.rates.Graph, m.rates.Region)}
	if len(m.rates.Param) > 0 {
		parts = append(parts, "parameter servers as "+servers(m.rates.Param, m.rates.Region))
	} else {
		parts = append(parts, "parameter servers on the same machines")
	}
	switch l := m.rates.Lambda; {
	case l == nil:
		parts = append(parts, "no Lambda")
	case m.use.Modelled:
		parts = append(parts, "Lambda modelled by the local service, by prices of "+origin(l.Origin))
	default:
		parts = append(parts, "Lambda by prices of "+origin(l.Origin))
	}
	if b.Traffic > 0 {
		parts = append(parts, "traffic by prices of "+origin(m.rates.Traffic))
	} else {
		parts = append(parts, "no traffic that is paid for")
	}
	parts = append(parts, "without loading data and AWS's minimum of 60 s")
	if m.mixed {
		parts = append(parts, "earlier segments by the prices that they began with")
	}
	if b.Missing != "" {
		parts = append(parts, "the total is not known: "+b.Missing+" had no price")
	}
	return strings.Join(parts, "; ")
}

// servers is "1 c5n.2xlarge at $0.432 an hour (us-east-1 on demand, 2026-07-20: ...)".
func servers(list []engine.ServerRate, region string) string {
	var parts []string
	for _, s := range list {
		terms := "on demand"
		if s.Spot {
			terms = "spot"
		}
		parts = append(parts, fmt.Sprintf("%d %s at %s an hour (%s %s, %s)", s.Count, s.Type, FromUSD(s.USDPerHour).Exact(), region, terms, origin(s.Origin)))
	}
	return strings.Join(parts, " and ")
}

// origin is "2026-07-20: from whom".
func origin(o engine.Origin) string {
	text := o.Date + ", " + o.From
	if o.Certainty != "" {
		text += ", " + o.Certainty
	}
	return text
}
