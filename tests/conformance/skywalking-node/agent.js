// agent.js HOST:PORT SERVICE INSTANCE SECONDS: skywalking-backend-js as in its manual, in a program that lives that long.
const { default: agent } = require("skywalking-backend-js");

const [collectorAddress, serviceName, serviceInstance, seconds] = process.argv.slice(2);
agent.start({ serviceName, serviceInstance, collectorAddress });
setTimeout(() => process.exit(0), 1000 * seconds);
