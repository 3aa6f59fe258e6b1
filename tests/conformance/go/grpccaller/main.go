// grpccaller HOST:PORT [METHOD FILE...]: sends each file, an encoded request, with grpc-go over TLS. The credential is a bearer
// token, PYROSCOPE_AUTH_TOKEN. Standard output: [{"code", "message", "alpn", "answer" in base64}] in the same order.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

type answer struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Alpn    string `json:"alpn"`
	Answer  []byte `json:"answer"`
}

// encoded leaves messages as they are.
type encoded struct{}

func (encoded) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (encoded) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte{}, data...)
	return nil
}

func (encoded) Name() string { return "proto" }

type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ask(connection *grpc.ClientConn, method, file string) (out answer) {
	request, err := os.ReadFile(file)
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var server peer.Peer
	err = connection.Invoke(ctx, "/"+method, &request, &out.Answer, grpc.Peer(&server))
	out.Code, out.Message = status.Code(err).String(), status.Convert(err).Message()
	if tls, ok := server.AuthInfo.(credentials.TLSInfo); ok {
		out.Alpn = tls.State.NegotiatedProtocol
	}
	return out
}

func main() {
	connection, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(credentials.NewTLS(nil)), // the authorities of the system: SSL_CERT_FILE
		grpc.WithPerRPCCredentials(bearer(os.Getenv("PYROSCOPE_AUTH_TOKEN"))),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(encoded{})))
	must(err)
	var out []answer
	for i := 2; i+1 < len(os.Args); i += 2 {
		out = append(out, ask(connection, os.Args[i], os.Args[i+1]))
	}
	must(json.NewEncoder(os.Stdout).Encode(out))
}
