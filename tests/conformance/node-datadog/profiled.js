// profiled.js SECONDS: a web server that asks itself, under node -r dd-trace/init; nothing of dd-trace is in it.
const http = require('http')

function burnProcessor (until) {
  let n = 0
  while (Date.now() < until) {
    for (let i = 0; i < 1e6; i++) n = (n * 31 + i) % 1000003
  }
  return n
}

const end = Date.now() + 1000 * Number(process.argv[2])
const server = http.createServer((request, response) => {
  burnProcessor(Date.now() + 200)
  response.end('done')
})

server.listen(0, '127.0.0.1', () => {
  const ask = () => {
    if (Date.now() >= end) return setTimeout(() => process.exit(0), 2000)
    http.get({ port: server.address().port, host: '127.0.0.1', path: '/orders' }, answer => {
      answer.resume()
      answer.on('end', ask)
    })
  }
  ask()
})
