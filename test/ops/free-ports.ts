// Finds consecutive ports of this machine on which no process listens. They are below the range from which systems
// choose a port for a process that asks for any.
import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

const LOWEST = 20_000
const HIGHEST = 32_000

export async function freePorts(count: number): Promise<number[]> {
  for (;;) {
    const first = randomInt(LOWEST, HIGHEST)
    const ports = Array.from({ length: count }, (_, index) => first + index)
    const servers = await Promise.all(ports.map(listen))
    await Promise.all(servers.map(server => server && new Promise(resolve => server.close(resolve))))
    if (servers.every(server => server !== undefined)) return ports
  }
}

function listen(port: number): Promise<Server | undefined> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
