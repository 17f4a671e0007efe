// Finds the client that a command's argument names.
import * as clients from '../../../src/store/access/clients.ts'
import type { Db } from '../../../src/store/pool.ts'
import { Stop } from '../../exit.ts'
import { moment } from '../../terminal.ts'

/** Finds a client by its id, or by a name that only one client has; also a revoked one. */
export async function findClient(db: Db, word: string): Promise<clients.Client> {
  const found = await clients.findByIdOrName(db, word)
  const [first, ...others] = found
  const client = found.find(({ clientId }) => clientId === word) ?? (others.length === 0 ? first : undefined)
  if (client) return client
  if (first) throw new Stop('Several clients have this name; give the client id.')
  throw new Stop('There is no such client; `tokenmill client list` lists them.')
}

/** As `findClient`, for a command that changes the client. tokenmill's own clients have a command of their own. */
export async function findOwnClient(db: Db, word: string): Promise<clients.Client> {
  const client = await findClient(db, word)
  if (client.system)
    throw new Stop(
      `${client.clientId} is a client of tokenmill itself; \`tokenmill system rotate ${client.clientId}\` replaces its key, and with --stolen ends the former one at once.`,
    )
  return client
}

/** As `findOwnClient`, but stops if the client is revoked. */
export async function findOwnLiveClient(db: Db, word: string): Promise<clients.Client> {
  return live(await findOwnClient(db, word))
}

/** As `findClient`, but stops if the client is revoked. */
export async function findLiveClient(db: Db, word: string): Promise<clients.Client> {
  return live(await findClient(db, word))
}

function live(client: clients.Client): clients.Client {
  if (client.revokedAt !== null) throw new Stop(`This client was revoked at ${moment(client.revokedAt)}.`)
  return client
}
