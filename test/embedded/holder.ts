// A process of the embedded tests: it attaches, prints a line, and releases when its standard input ends. With a number
// it attaches, uses the database and releases so many times.
import { Client } from 'pg'
import { attach } from '../../src/embedded/server.ts'

const [dir = '', cycles] = process.argv.slice(2)

async function useOnce(): Promise<void> {
  const embedded = await attach(dir)
  const client = new Client({ connectionString: embedded.url })
  await client.connect()
  await client.query('select 1')
  await client.end()
  await embedded.release()
}

if (cycles) {
  for (let n = 0; n < Number(cycles); n++) await useOnce()
} else {
  const embedded = await attach(dir)
  process.stdout.write(`attached ${embedded.url}\n`)
  process.stdin.resume()
  process.stdin.once('end', async () => {
    await embedded.release()
    process.stdout.write('released\n')
    process.exit(0)
  })
}
