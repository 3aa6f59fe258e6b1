// caller URL DESCRIPTORS QUESTIONS: asks each question with connect-go, over each protocol that it speaks.
//
// QUESTIONS is a file: [{"method": "package.Service/Method", "request": {JSON}}]. Standard output:
// {protocol: [{"code": "", "message": "", "answer": {JSON}}]} in the same order.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type question struct {
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
}

type answer struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Answer  json.RawMessage `json:"answer,omitempty"`
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func methodOf(files *protoregistry.Files, name string) protoreflect.MethodDescriptor {
	found, err := files.FindDescriptorByName(protoreflect.FullName(strings.Replace(name, "/", ".", 1)))
	must(err)
	return found.(protoreflect.MethodDescriptor)
}

func ask(client *http.Client, url string, method protoreflect.MethodDescriptor, q question, options ...connect.ClientOption) answer {
	request := dynamicpb.NewMessage(method.Input())
	must(protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(q.Request, request))
	options = append(options, connect.WithSchema(method), connect.WithResponseInitializer(func(_ connect.Spec, message any) error {
		if m, ok := message.(*dynamicpb.Message); ok {
			*m = *dynamicpb.NewMessage(method.Output())
		}
		return nil
	}))
	c := connect.NewClient[dynamicpb.Message, dynamicpb.Message](client, url+"/"+q.Method, options...)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	response, err := c.CallUnary(ctx, connect.NewRequest(request))
	if err != nil {
		out := answer{Code: connect.CodeOf(err).String(), Message: err.Error()}
		if !connect.IsWireError(err) {
			out.Code = "made by the client: " + out.Code
		}
		return out
	}
	text, err := protojson.Marshal(response.Msg)
	must(err)
	return answer{Answer: text}
}

func main() {
	raw, err := os.ReadFile(os.Args[2])
	must(err)
	set := new(descriptorpb.FileDescriptorSet)
	must(proto.Unmarshal(raw, set))
	files, err := protodesc.NewFiles(set)
	must(err)
	raw, err = os.ReadFile(os.Args[3])
	must(err)
	var questions []question
	must(json.Unmarshal(raw, &questions))

	var h2 http.Protocols
	h2.SetUnencryptedHTTP2(true)
	one, two := &http.Client{}, &http.Client{Transport: &http.Transport{Protocols: &h2}}
	protocols := []struct {
		name    string
		client  *http.Client
		options []connect.ClientOption
	}{
		{"connect proto", one, nil},
		{"connect proto gzip", one, []connect.ClientOption{connect.WithSendGzip()}},
		{"connect json", one, []connect.ClientOption{connect.WithProtoJSON()}},
		{"grpc", two, []connect.ClientOption{connect.WithGRPC()}},
		{"grpc gzip", two, []connect.ClientOption{connect.WithGRPC(), connect.WithSendGzip()}},
		{"grpc-web", one, []connect.ClientOption{connect.WithGRPCWeb()}},
	}
	out := map[string][]answer{}
	for _, p := range protocols {
		for _, q := range questions {
			out[p.name] = append(out[p.name], ask(p.client, os.Args[1], methodOf(files, q.Method), q, p.options...))
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(out))
}
