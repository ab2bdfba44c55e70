package engine

// ParamRole is ServerDone.Role of a parameter server.
const ParamRole = "param"

// DeviceRole is that of a device of several in one process, which has a partition as a
// graph server has.
const DeviceRole = "device"

// ServerDone is what one graph server of several has to say at the end of a run, or one
// device of several, or a parameter server, which tells its peak memory only. It is
// among the events of server 0, as are the sums of the others' tasks and bills.
type ServerDone struct {
	Role    string `json:"role,omitempty"` // ParamRole, DeviceRole; "": a graph server
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	PeakMem int64  `json:"peak_memory_bytes"`
	// RowValues are the bytes of the rows that were sent to other graph servers, rows x
	// width x 4, RowBytes those that they took on the wire, RowFraming those around them.
	RowValues  int64 `json:"row_value_bytes_sent"`
	RowBytes   int64 `json:"row_bytes_sent"`
	RowFraming int64 `json:"row_framing_bytes_sent"`
	// RowPeer are the bytes of rows that a device has given to others straight, without the
	// host's memory between.
	RowPeer int64 `json:"row_peer_bytes_sent,omitempty"`
	// Sent and Received are the bytes of the connections that this server has opened to
	// others, those of TLS and HTTP/2 included; ParamsSent and ParamsReceived those of
	// messages to and from parameter servers.
	Sent           int64 `json:"bytes_sent"`
	Received       int64 `json:"bytes_received"`
	ParamsSent     int64 `json:"parameter_bytes_sent"`
	ParamsReceived int64 `json:"parameter_bytes_received"`
	// RowAgeFrom counts the rows that this server's gathers of training epochs have read,
	// by the rank of the server that has them, itself included, and by their age in epochs,
	// as TaskDone.AgeFrom does. It is of this process, so epochs before a resume or a
	// restart do not count.
	RowAgeFrom Ages `json:"row_age_from,omitempty"`
}

// Kind implements Event.
func (ServerDone) Kind() string { return "server" }
