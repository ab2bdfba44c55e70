package engine

// Rates are the prices by which a run is billed. They are in its RunStart, so that
// the events alone give the bill, whatever later prices are.
type Rates struct {
	Region string `json:"region"`
	// Graph and Param are the servers that are held for the whole run, by type. Empty
	// Param: the parameter servers are on the machines of the graph servers.
	Graph []ServerRate `json:"graph_servers"`
	Param []ServerRate `json:"parameter_servers,omitempty"`
	// Lambda is nil where no Lambda workers can be used.
	Lambda *LambdaRates `json:"lambda,omitempty"`
	// ZoneGB and NATGB are dollars per 10^9 bytes that cross zones, counted at both
	// ends, and that pass a NAT gateway.
	ZoneGB float64 `json:"zone_usd_per_gb"`
	NATGB  float64 `json:"nat_usd_per_gb"`
	// Traffic is the origin of ZoneGB and NATGB.
	Traffic Origin `json:"traffic_origin"`
}

// ServerRate prices Count servers of one type.
type ServerRate struct {
	Type       string  `json:"type"` // "c5n.2xlarge"
	Count      int     `json:"count"`
	USDPerHour float64 `json:"usd_per_hour"` // of each
	Spot       bool    `json:"spot,omitempty"`
	Origin     Origin  `json:"origin"`
}

// LambdaRates price Lambda workers; GBs are GiB-seconds: MB/1024 times seconds.
type LambdaRates struct {
	GBs        map[string]float64 `json:"usd_per_gb_s"` // by architecture: "x86_64", "arm64"
	Request    float64            `json:"usd_per_request"`
	StreamedGB float64            `json:"usd_per_streamed_gb"` // of replies, beyond 6 MB each
	LogGB      float64            `json:"usd_per_log_gb"`
	Origin     Origin             `json:"origin"`
}

// Origin says where a price comes from.
type Origin struct {
	Date      string `json:"date"` // of the figure: "2026-07-20"
	From      string `json:"from"`
	Certainty string `json:"certainty,omitempty"`
}

// LambdaUsed is one Lambda invocation that has ended, as its REPORT line bills it.
type LambdaUsed struct {
	Arch     string `json:"arch"` // "x86_64", "arm64"
	MemoryMB int    `json:"memory_mb"`
	BilledMS int64  `json:"billed_ms"`         // INIT included
	InitMS   int64  `json:"init_ms,omitempty"` // of BilledMS
	// Streamed are the bytes of a streamed reply beyond its first 6 MB, Logged those
	// that went to the log.
	Streamed int64 `json:"streamed_bytes,omitempty"`
	Logged   int64 `json:"logged_bytes,omitempty"`
	// Modelled says that a local service has counted this, not AWS.
	Modelled bool `json:"modelled,omitempty"`
}

// LambdaHeld is what all invocations of a graph server that are under way have used so far,
// which their LambdaUsed will bill; each one takes the place of the one before of the same
// server, and an empty one follows its last LambdaUsed. Invocations last minutes: without it a live bill, and
// with it a limit, would lag behind.
type LambdaHeld struct {
	Server      int              `json:"server,omitempty"` // its rank
	MBms        map[string]int64 `json:"mb_ms"`            // MB times milliseconds since their start, by architecture
	Invocations int64            `json:"invocations"`
}

// Moved counts bytes between machines since the last such event, as far as they are
// paid for.
type Moved struct {
	Zone int64 `json:"zone_bytes,omitempty"` // crossed availability zones, once each
	NAT  int64 `json:"nat_bytes,omitempty"`  // passed a NAT gateway
}

// Kind implements Event.
func (LambdaUsed) Kind() string { return "lambda_used" }
func (LambdaHeld) Kind() string { return "lambda_held" }
func (Moved) Kind() string      { return "moved" }
