"""The tools of Sallyport for a LangChain agent."""

import asyncio
import os

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient


async def main():
    client = MultiServerMCPClient(
        {
            "sallyport": {
                "transport": "http",
                "url": os.environ.get("SALLYPORT_URL", "http://127.0.0.1:8080") + "/mcp",
                "headers": {"Authorization": f"Bearer {os.environ['SALLYPORT_TOKEN']}"},
            }
        }
    )
    agent = create_agent(os.environ["MODEL"], await client.get_tools())
    answer = await agent.ainvoke({"messages": [{"role": "user", "content": "What is 2 + 40? Use a tool."}]})
    print(answer["messages"][-1].content)


asyncio.run(main())
