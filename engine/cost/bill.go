package cost

import (
	"maps"
	"slices"

	"dorylus/engine"
)

// Usage is what a run, or a segment of one, has used.
type Usage struct {
	// Seconds is the time for which every server was held.
	Seconds float64
	// LambdaMBms is billed milliseconds times configured MB, by architecture, as
	// integers: their sum depends on no order.
	LambdaMBms map[string]int64
	Requests   int64
	Streamed   int64 // bytes of streamed replies beyond 6 MB each
	Logged     int64 // bytes
	Zone, NAT  int64 // bytes that crossed zones, or passed a NAT gateway
	Modelled   bool  // Lambda was counted by a local service
}

// with is u and the invocations under way.
func (u Usage) with(h engine.LambdaHeld) Usage {
	if h.Invocations == 0 {
		return u
	}
	sum := map[string]int64{}
	maps.Copy(sum, h.MBms)
	for arch, n := range u.LambdaMBms {
		sum[arch] += n
	}
	u.LambdaMBms, u.Requests = sum, u.Requests+h.Invocations
	return u
}

// Bill is what a Usage costs, by part.
type Bill struct {
	Graph, Param, Duration, Requests, Logs, Traffic Dollars
	// Missing says what was used and has no price; Total is then not known.
	Missing string
}

// Part is one line of a bill.
type Part struct {
	Key  string // in cost_usd of a summary
	Name string // for people
	Cost Dollars
}

// Parts lists the parts, always the same ones in the same order.
func (b Bill) Parts() []Part {
	return []Part{
		{"graph_servers", "graph servers", b.Graph},
		{"parameter_servers", "parameter servers", b.Param},
		{"lambda_duration", "Lambda GB-seconds", b.Duration},
		{"lambda_requests", "Lambda requests", b.Requests},
		{"lambda_logs", "Lambda logs", b.Logs},
		{"traffic", "traffic", b.Traffic},
	}
}

// Total is the sum of the parts. known is false if something has no price.
func (b Bill) Total() (sum Dollars, known bool) {
	for _, p := range b.Parts() {
		sum += p.Cost
	}
	return sum, b.Missing == ""
}

// Plus is b and c together.
func (b Bill) Plus(c Bill) Bill {
	b.Graph += c.Graph
	b.Param += c.Param
	b.Duration += c.Duration
	b.Requests += c.Requests
	b.Logs += c.Logs
	b.Traffic += c.Traffic
	if b.Missing == "" {
		b.Missing = c.Missing
	}
	return b
}

// Bill prices u. r may be nil: there are no prices then.
func (u Usage) Bill(r *engine.Rates) Bill {
	if r == nil {
		return Bill{Missing: "the servers"}
	}
	b := Bill{
		Graph: held(r.Graph, u.Seconds), Param: held(r.Param, u.Seconds),
		Traffic: FromUSD((2*float64(u.Zone)*r.ZoneGB + float64(u.NAT)*r.NATGB) / 1e9),
	}
	if u.Requests == 0 {
		return b
	}
	if r.Lambda == nil {
		b.Missing = "Lambda workers"
		return b
	}
	gbs := 0.0
	for _, arch := range []string{X86, ARM} { // in this order, for the same bits
		gbs += float64(u.LambdaMBms[arch]) / (1024 * 1000) * r.Lambda.GBs[arch]
	}
	for _, arch := range slices.Sorted(maps.Keys(u.LambdaMBms)) {
		if r.Lambda.GBs[arch] == 0 {
			b.Missing = "Lambda workers on " + arch
		}
	}
	b.Duration = FromUSD(gbs)
	b.Requests = FromUSD(float64(u.Requests) * r.Lambda.Request)
	b.Logs = FromUSD(float64(u.Logged) * r.Lambda.LogGB / 1e9)
	b.Traffic = FromUSD((2*float64(u.Zone)*r.ZoneGB + float64(u.NAT)*r.NATGB + float64(u.Streamed)*r.Lambda.StreamedGB) / 1e9)
	return b
}

// held is the price of servers for a time.
func held(servers []engine.ServerRate, seconds float64) Dollars {
	perHour := 0.0
	for _, s := range servers {
		perHour += float64(s.Count) * s.USDPerHour
	}
	return FromUSD(perHour * seconds / 3600)
}
