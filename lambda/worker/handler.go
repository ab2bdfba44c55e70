package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"dorylus/lambda/rpc"
)

// Invoke handles one invocation: payload is an Invitation, the answer the worker's
// farewell, both JSON. It implements aws-lambda-go's lambda.Handler.
func (w *Worker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var in Invitation
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, fmt.Errorf("read the invitation: %w", err)
	}
	roots, err := rpc.Trust(in.Certificate)
	if err != nil {
		return nil, err
	}
	conn, hang, err := rpc.Dial(ctx, in.Addresses, roots)
	if err != nil {
		return nil, err
	}
	defer hang()
	bye, err := w.Serve(ctx, conn, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(bye)
}
