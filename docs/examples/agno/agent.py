"""The tools of Sallyport for an Agno agent."""

import asyncio
import os

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.mcp import MCPTools, StreamableHTTPClientParams


async def main():
    params = StreamableHTTPClientParams(
        url=os.environ.get("SALLYPORT_URL", "http://127.0.0.1:8080") + "/mcp",
        headers={"Authorization": f"Bearer {os.environ['SALLYPORT_TOKEN']}"},
    )
    tools = MCPTools(server_params=params, transport="streamable-http", timeout_seconds=300)
    await tools.connect()
    try:
        agent = Agent(model=OpenAIChat(id=os.environ["MODEL"]), tools=[tools])
        await agent.aprint_response("What is 2 + 40? Use a tool.")
    finally:
        await tools.close()


asyncio.run(main())
