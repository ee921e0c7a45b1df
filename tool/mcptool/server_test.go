package mcptool

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// modeEnv makes the test binary an MCP server; eventsEnv is where it tells the test what happens to it.
const (
	modeEnv   = "MCPTOOL_TEST_MODE"
	eventsEnv = "MCPTOOL_TEST_EVENTS"
	fileEnv   = "MCPTOOL_TEST_FILE"
)

func TestMain(m *testing.M) {
	modes := map[string]func(){
		"sdk": serveSDK, "unless-file": serveUnlessFile, "grandchild": holdOn, "silent": beSilent, "deaf": neverRead,
		"endless": sendEndless, "pages": sendPages, "noise": withNoise, "asking": askEndlessly, "old": refuseDiscover, "flood": floodStderr,
	}
	mode := os.Getenv(modeEnv)
	if mode == "" {
		os.Exit(m.Run())
	}
	modes[mode]()
}

// report sends a line to the test.
func report(line string) {
	conn, err := net.Dial("tcp", os.Getenv(eventsEnv))
	if err != nil {
		return
	}
	fmt.Fprintln(conn, line)
	conn.Close()
}

func serveSDK() {
	if err := sdkServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// serveUnlessFile fails to start while the file is not there.
func serveUnlessFile() {
	if _, err := os.Stat(os.Getenv(fileEnv)); err != nil {
		fmt.Fprintln(os.Stderr, "the token is missing")
		os.Exit(4)
	}
	serveSDK()
}

// sdkServer has a tool for each thing that can happen.
func sdkServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "testing", Version: "1"}, nil)
	add := func(name string, hints *mcp.ToolAnnotations, run func(ctx context.Context, text string) (*mcp.CallToolResult, error)) {
		server.AddTool(&mcp.Tool{Name: name, Description: "Does " + name + ".", Annotations: hints, InputSchema: json.RawMessage(
			`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)},
			func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var in struct{ Text string }
				if err := json.Unmarshal(request.Params.Arguments, &in); err != nil {
					return nil, err
				}
				return run(ctx, in.Text)
			})
	}
	add("echo", nil, func(_ context.Context, text string) (*mcp.CallToolResult, error) { return texts(text), nil })
	add("env", nil, func(context.Context, string) (*mcp.CallToolResult, error) {
		return texts(strings.Join(os.Environ(), "\n")), nil
	})
	add("pid", nil, func(context.Context, string) (*mcp.CallToolResult, error) {
		return texts(strconv.Itoa(os.Getpid())), nil
	})
	add("big", nil, func(_ context.Context, size string) (*mcp.CallToolResult, error) {
		n, err := strconv.Atoi(size)
		return texts(strings.Repeat("0123456789abcde\n", n/16)), err
	})
	add("die", nil, func(context.Context, string) (*mcp.CallToolResult, error) {
		report("dies")
		os.Exit(3)
		return nil, nil
	})
	add("die_once", &mcp.ToolAnnotations{IdempotentHint: true}, func(context.Context, string) (*mcp.CallToolResult, error) {
		if _, err := os.Stat(os.Getenv(fileEnv)); err != nil {
			_ = os.WriteFile(os.Getenv(fileEnv), nil, 0o600)
			os.Exit(3)
		}
		return texts("done at last"), nil
	})
	add("hang", nil, func(ctx context.Context, _ string) (*mcp.CallToolResult, error) {
		report("hangs")
		<-ctx.Done()
		report("cancelled")
		return nil, ctx.Err()
	})
	add("fail", nil, func(context.Context, string) (*mcp.CallToolResult, error) {
		result := texts("no such bank")
		result.IsError = true
		return result, nil
	})
	add("grow", nil, func(context.Context, string) (*mcp.CallToolResult, error) {
		add("grown", nil, func(context.Context, string) (*mcp.CallToolResult, error) { return texts("tall"), nil })
		return texts("grew"), nil
	})
	add("spawn", nil, func(context.Context, string) (*mcp.CallToolResult, error) {
		grandchild := exec.Command(os.Args[0])
		grandchild.Env = append(os.Environ(), modeEnv+"=grandchild")
		grandchild.Stdout, grandchild.Stderr = os.Stdout, os.Stderr // it holds the pipes open
		return texts("spawned"), grandchild.Start()
	})
	return server
}

func texts(all ...string) *mcp.CallToolResult {
	result := &mcp.CallToolResult{}
	for _, text := range all {
		result.Content = append(result.Content, &mcp.TextContent{Text: text})
	}
	return result
}

// holdOn is a grandchild that does not go when it is asked; the test sees its end by the connection's.
func holdOn() {
	signal.Ignore(syscall.SIGTERM)
	conn, err := net.Dial("tcp", os.Getenv(eventsEnv))
	if err != nil {
		os.Exit(1)
	}
	fmt.Fprintln(conn, "grandchild")
	_, _ = io.Copy(io.Discard, conn)
}

// raw is a server without the SDK: it answers each request by its method with a result written in JSON.
func raw(answers map[string]func(id, cursor string)) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var request struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		_ = json.Unmarshal(text, &request)
		if answer := answers[request.Method]; answer != nil {
			answer(string(request.ID), request.Params.Cursor)
		} else if request.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no %s here"}}`+"\n", request.ID, request.Method)
		}
	}
}

func initialize(id, _ string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}}`+"\n", id)
}

func oneTool(id, _ string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}}`+"\n", id)
}

func beSilent() { _, _ = io.Copy(io.Discard, os.Stdin) }

// neverRead answers the handshake and then reads nothing any more.
func neverRead() {
	raw(map[string]func(id, cursor string){"initialize": initialize, "tools/list": func(id, cursor string) {
		oneTool(id, cursor)
		select {}
	}})
}

// sendEndless answers a call with a message that never ends.
func sendEndless() {
	raw(map[string]func(id, cursor string){"initialize": initialize, "tools/list": oneTool, "tools/call": func(id, _ string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
		for block := strings.Repeat("a", 64<<10); ; {
			if _, err := os.Stdout.WriteString(block); err != nil {
				return
			}
		}
	}})
}

// sendPages lists tools without an end.
func sendPages() {
	raw(map[string]func(id, cursor string){"initialize": initialize, "tools/list": func(id, cursor string) {
		page, _ := strconv.Atoi(cursor)
		var tools []string
		for i := range 100 {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":%q,"inputSchema":{"type":"object"}}`, page*100+i, strings.Repeat("é", 3000)))
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s],"nextCursor":"%d"}}`+"\n", id, strings.Join(tools, ","), page+1)
	}})
}

// withNoise prints to stdout what does not belong there, and tools that cannot be offered.
func withNoise() {
	fmt.Println("Server listening…")
	fmt.Println(`{"level":"info"}`)
	raw(map[string]func(id, cursor string){"initialize": initialize, "tools/list": func(id, _ string) {
		fmt.Println("[debug] listing")
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`+"\n", id, strings.Join([]string{
			`{"name":"a.b","inputSchema":{"type":"object"}}`, `{"name":"a_b","inputSchema":{}}`, `{"name":"","inputSchema":{}}`,
			`{"name":"x\u0007","inputSchema":{}}`, `{"name":"` + strings.Repeat("n", 129) + `","inputSchema":{}}`,
			`{"name":"listy","inputSchema":["no"]}`, `{"name":"stringy","inputSchema":{"type":"string"}}`, `{"name":"free"}`,
			`{"name":"long","description":"` + strings.Repeat("é", 1<<20) + `","inputSchema":{"type":"object"}}`,
			`{"name":"wide","inputSchema":{"type":"object","description":"` + strings.Repeat("w", 1<<20) + `"}}`,
		}, ","))
	}})
}

// askEndlessly sends requests and never reads an answer.
func askEndlessly() {
	raw(map[string]func(id, cursor string){"initialize": initialize, "tools/list": func(id, cursor string) {
		oneTool(id, cursor)
		for n := 1; ; n++ {
			if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":"s%d","method":"ping","params":{"x":%q}}`+"\n", n, strings.Repeat("x", 2000)); err != nil {
				return
			}
		}
	}})
}

// refuseDiscover dies of a first message that is not initialize, as some old servers do.
func refuseDiscover() {
	raw(map[string]func(id, cursor string){
		"server/discover": func(string, string) { os.Exit(9) }, "initialize": initialize, "tools/list": oneTool,
	})
}

// floodStderr writes 200 MB of stderr before it serves.
func floodStderr() {
	block := []byte(strings.Repeat(strings.Repeat("e", 4000)+"\n", 250))
	for range 200 {
		_, _ = os.Stderr.Write(block)
	}
	serveSDK()
}
