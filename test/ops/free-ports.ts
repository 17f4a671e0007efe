// Finds consecutive ports of this machine on which no process listens. They are below the range from which systems
// choose a port for a process that asks for any, and no other test gets them: neither before a server listens there nor while
// it is killed.
import { randomInt } from 'node:crypto'
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const LOWEST = 20_000
const HIGHEST = 32_000
/** A note in this folder, named by the port, says that a test has it; older notes are of runs that have ended. */
const TAKEN = join(tmpdir(), 'tokenmill-test-ports')
const TAKEN_MS = 3_600_000

export async function freePorts(count: number): Promise<number[]> {
  for (;;) {
    const first = randomInt(LOWEST, HIGHEST)
    const ports = Array.from({ length: count }, (_, index) => first + index)
    if (!ports.every(take)) continue
    const servers = await Promise.all(ports.map(listen))
    await Promise.all(servers.map(server => server && new Promise(resolve => server.close(resolve))))
    if (servers.every(server => server !== undefined)) return ports
  }
}

function take(port: number): boolean {
  const note = join(TAKEN, String(port))
  mkdirSync(TAKEN, { recursive: true })
  try {
    if (Date.now() - statSync(note).mtimeMs < TAKEN_MS) return false
    rmSync(note, { force: true })
  } catch {
    // Nobody has it.
  }
  try {
    writeFileSync(note, '', { flag: 'wx' })
    return true
  } catch {
    return false
  }
}

function listen(port: number): Promise<Server | undefined> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
