// The demo's last lines: reads one migrated token over HTTP and shows the same request as a line for curl.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { ClientFile } from '../../../producers/client/client-file.ts'
import { devClientPath } from '../../open/dev-client.ts'
import type { Session } from '../../open/open.ts'
import { GATEWAY } from '../../process/gateway.ts'
import { forkHttp } from '../../process/http-process.ts'

/** Where `npm start` serves. */
const PORT = 8080

/**
 * The first token of a results file, as a line for curl and what it answers. `script`: the command's script, from which
 * the gateway is forked.
 */
export async function readOverHttp(
  session: Session,
  script: string,
  results: string,
): Promise<{ line: string; answer: string }> {
  const { user_id, api_key } = JSON.parse(await readFile(devClientPath(session.config), 'utf8')) as ClientFile
  const rows = (await readFile(results, 'utf8')).split('\n')
  const token = rows.flatMap(row => row.split(',').filter(cell => /^t[0-9A-Z]{26}$/.test(cell)))[0]
  const env = {
    ...session.terminal.env,
    TOKENMILL_HTTP_PORT: String((await isFree(PORT)) ? PORT : 0),
    TOKENMILL_LOG_LEVEL: 'error',
  }
  const port = await forkHttp({ ...session, terminal: { ...session.terminal, env } }, script, GATEWAY)
  const url = `http://127.0.0.1:${port}/oidc/api/v2/card/${token}`
  const authorization = `Basic ${Buffer.from(`${user_id}:${api_key}`).toString('base64')}`
  const response = await fetch(url, { headers: { authorization } })
  const line = `curl -sS -u ${user_id}:${api_key} ${url}`
  return { line, answer: JSON.stringify(await response.json(), null, 2) }
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
