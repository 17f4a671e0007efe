// Has a process of Node collect all its garbage, by its inspector. Memory after that can be compared over time; before, it depends on
// when the process last had time to collect.
import { once } from 'node:events'
import type { Child } from '../../test/support/process.ts'

export interface Collector {
  collect(): Promise<void>
  close(): void
}

/** Node's option for a process that is collected: its inspector then listens on any free port of this machine. */
export const COLLECTED = ['--inspect-port=0']

/** Opens the inspector of a process that was started with `COLLECTED`. */
export async function openCollector(child: Child): Promise<Collector> {
  const listening = child.line(/^Debugger listening on (ws:\S+)$/m, { stream: 'stderr' })
  child.signal('SIGUSR1')
  const [, url = ''] = await listening
  const socket = new WebSocket(url)
  await once(socket, 'open')
  let asked = 0
  return {
    async collect() {
      asked += 1
      const id = asked
      const answered = Promise.withResolvers<void>()
      const hear = ({ data }: MessageEvent) => {
        const answer = JSON.parse(String(data)) as { id?: number; error?: { message: string } }
        if (answer.id !== id) return
        if (answer.error) answered.reject(new Error(answer.error.message))
        else answered.resolve()
      }
      socket.addEventListener('message', hear)
      socket.send(JSON.stringify({ id, method: 'HeapProfiler.collectGarbage' }))
      await answered.promise.finally(() => socket.removeEventListener('message', hear))
    },
    close: () => socket.close(),
  }
}
