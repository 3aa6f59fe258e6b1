"""agent.py HOST:PORT SERVICE INSTANCE SECONDS: apache-skywalking as in its manual, in a program that lives that long."""

import sys
import time

from skywalking import agent, config

address, service, instance, seconds = sys.argv[1:]
config.init(
    agent_collector_backend_services=address,
    agent_name=service,
    agent_instance_name=instance,
)
agent.start()
time.sleep(float(seconds))
