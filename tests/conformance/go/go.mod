module hearth/tests/conformance

go 1.25.0

require (
	connectrpc.com/connect v1.19.2
	github.com/grafana/pyroscope-go v1.4.3
	google.golang.org/protobuf v1.36.10
)

require (
	github.com/grafana/pyroscope-go/godeltaprof v0.1.11 // indirect
	github.com/klauspost/compress v1.18.7 // indirect
)
