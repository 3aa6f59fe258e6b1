"""A model's view of `hearth mcp` through the protocol's own SDK.

mcp_client.py HEARTH URL MODE SERVICE: MODE is "legacy" (initialize) or "auto" (server/discover first). Looks for the
hottest function of a service as an assistant would, and prints what it found as JSON.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


def read(result):
    """The answer of a tool that succeeded."""
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)


async def main(hearth, url, mode, service):
    server = StdioServerParameters(command=hearth, args=["mcp", "--url", url])
    async with Client(stdio_client(server), mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        services = read(await client.call_tool("services", {}))["services"]
        top = read(await client.call_tool("top", {"selector": service, "limit": 1}))
        root = read(await client.call_tool("flame_slice", {"selector": service, "depth": 1}))
        frame = root["children"][0]["frame"]
        below = read(await client.call_tool("flame_slice", {"selector": service, "frame": frame}))
        wrong = await client.call_tool("top", {"selector": service, "by_kind": "color"})
        print(json.dumps({
            "version": client.protocol_version,
            "server": client.server_info.name,
            "tools": sorted(tools),
            "required": tools["sandwich"].input_schema["required"],
            "is_listed": service in services,
            "top": top["rows"][0]["name"],
            "path": below["path"],
            "is_refused": wrong.is_error and "by_kind" in wrong.content[0].text,
        }))


asyncio.run(main(*sys.argv[1:]))
