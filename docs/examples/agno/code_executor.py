"""The tools of mcp_code_executor, from Sallyport, for an Agno agent that develops by tests."""

import asyncio
import os

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.mcp import MCPTools

TASK = """Write a test for a function that adds two numbers, with initialize_code_file. Run it with
execute_code_file: it fails. Write the function, and run the test until it passes."""


async def main():
    async with MCPTools(command="sallyport serve --share --compat mcp_code_executor", timeout_seconds=300) as tools:
        agent = Agent(model=OpenAIChat(id=os.environ["MODEL"]), tools=[tools])
        await agent.aprint_response(TASK)


asyncio.run(main())
