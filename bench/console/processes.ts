// The processes of a measured console, each by itself as in production, and the processor time that one of them takes.
import { readFileSync } from 'node:fs'
import { HEAP_FLAGS } from '../../bin/launch.mjs'
import type { Installation } from '../../test/support/installation.ts'
import { type Child, startCommand } from '../../test/support/process.ts'

export interface Processes {
  console: Child
  port: number
  close(): Promise<void>
}

/** `nodeArgs`: further options of Node for the console. */
export async function startProcesses(
  installation: Installation,
  port: number,
  nodeArgs: readonly string[] = [],
): Promise<Processes> {
  const origin = { TOKENMILL_CONSOLE_ORIGIN: `http://localhost:${port}` }
  await installation.startWorkers({ roles: ['interactive'], env: origin })
  await installation.startWorkers({ roles: ['bulk'], env: origin })
  const own = { TOKENMILL_CONSOLE_PORT: String(port), TOKENMILL_LOG_LEVEL: 'info', ...origin }
  const env = { ...(installation.env as Record<string, string>), ...own }
  const scheduler = startCommand(['scheduler'], { env })
  const served = startCommand(['console'], { env, nodeArgs: [...HEAP_FLAGS, ...nodeArgs] })
  await served.line(/"msg":"serving"/, { stream: 'stderr' })
  return {
    console: served,
    port,
    async close() {
      for (const child of [served, scheduler]) {
        child.signal('SIGTERM')
        await child.exit
      }
    },
  }
}

/** Processor time of a process so far, in s (Linux). */
export function processorSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14).map(Number)
  return ((user ?? 0) + (system ?? 0)) / 100
}

/** Resident memory of a process, in MiB (Linux). */
export function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
}
