// A process that uses one connection to the store again and again, and prints the server's port whenever it changes.
import { openLog } from '../../src/log.ts'
import { openStore } from '../../src/store/pool.ts'
import { until } from '../support/until.ts'

const store = openStore(process.argv[2] ?? '', { log: openLog('error'), connectionsMax: 1 })
let ended = false
let last: number | undefined
process.stdin.resume().once('end', () => {
  ended = true
})

async function look(): Promise<boolean> {
  const text = 'select inet_server_port() as port'
  const port = await store.query<{ port: number }>({ text }).then(
    ({ rows }) => rows[0]?.port,
    () => last,
  )
  if (port !== last) process.stdout.write(`on ${port}\n`)
  last = port
  return ended
}

await until(look, { what: 'the end of standard input' })
await store.close()
