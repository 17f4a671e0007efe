// `tokenmill client`: the clients, which may send jobs. client-key.ts has the commands for their keys.
import { join, resolve } from 'node:path'
import { grantClient, isClientGranted } from '../../../src/acts/grants.ts'
import type { Role } from '../../../src/job/catalogue.ts'
import type { NameRule } from '../../../src/job/envelope/names.ts'
import * as audits from '../../../src/store/access/audits.ts'
import * as clients from '../../../src/store/access/clients.ts'
import { makeApiKey } from '../../../src/vault/client-key.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { jsonText, writePrivate } from '../../open/key-files.ts'
import { openCommandStore, openVault, withSession } from '../../open/open.ts'
import { baseUrlOf, type Registered, registerClient, relativeTo } from '../../open/register-client.ts'
import { actor, facts, moment, print, say, type Terminal, table } from '../../terminal.ts'
import { findOwnLiveClient } from './find-client.ts'
import { readJwkFile } from './jwk-file.ts'

const NOT_OURS =
  'The row of this client was not written by tokenmill, or was changed since: see `tokenmill doctor`. Revoke it, and add the client anew.'

interface AddOptions extends JsonOption {
  entity: string[]
  roles: Role[]
  publicKey?: string
  names?: NameRule
  out?: string
}

export function add(terminal: Terminal, name: string, options: AddOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { config } = session
    const publicJwk = options.publicKey === undefined ? undefined : await readJwkFile(options.publicKey)
    const [own = '', ...others] = [...new Set(options.entity)]
    const outDir = resolve(options.out ?? join(config.dataDir, 'clients', name))
    const vault = await openVault(session)
    const registered = await registerClient(vault, {
      name,
      entities: [own, ...others],
      roles: options.roles,
      publicJwk,
      names: options.names,
      outDir,
      audience: config.audience,
      baseUrl: baseUrlOf(config),
    })
    const { api_key: _, ...withoutApiKey } = registered
    const file = join(outDir, 'client.json')
    await writePrivate(file, jsonText(relativeTo(outDir, withoutApiKey)), { replace: true })
    print(terminal, options, inOrder(registered), textOf(registered, file))
    if (registered.token_scope === undefined)
      say(terminal, `Its entity has no token scope yet: tokenmill scope add --entity ${own}`)
    if (registered.signing_key_file === null)
      say(terminal, `Put the place of the client's private JWK into signing_key_file of ${file}.`)
  })
}

function textOf(registered: Registered, file: string): string[] {
  return facts({
    client_id: registered.client_id,
    user_id: registered.user_id,
    api_key: `${registered.api_key}  (shown this once)`,
    'signing key': registered.signing_key_file ?? 'its own',
    'client file': file,
  })
}

function inOrder({ client_id, user_id, api_key, ...rest }: Registered): Registered {
  return { client_id, user_id, api_key, ...rest }
}

export function list(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const found = await clients.list(store)
    const shown = found.map(client => ({
      client_id: client.clientId,
      name: client.name,
      user_id: client.userId,
      entities: client.entities,
      roles: client.roles,
      alg: client.alg,
      system: client.system,
      names: client.names,
      created_at: moment(client.createdAt),
      revoked_at: client.revokedAt === null ? null : moment(client.revokedAt),
    }))
    const rows = found.map(client => [
      client.clientId,
      client.name,
      client.revokedAt === null ? (client.system ? 'system' : 'active') : 'revoked',
      client.roles.join(',') || '-',
      client.names,
      moment(client.createdAt),
    ])
    print(terminal, options, shown, table(['CLIENT', 'NAME', 'STATE', 'ROLES', 'NAMES', 'CREATED'], rows))
  })
}

export function revoke(terminal: Terminal, word: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const { clientId } = await findOwnLiveClient(store, word)
    await store.transaction(async db => {
      if (await clients.revoke(db, clientId))
        await audits.insert(db, { actor: actor(), action: 'client.revoke', subject: clientId })
    })
    print(terminal, options, { client_id: clientId, revoked: true }, `${clientId} is revoked`)
  })
}

export function setNames(terminal: Terminal, word: string, names: NameRule, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const { clientId } = await findOwnLiveClient(store, word)
    await store.transaction(async db => {
      const held = await clients.hold(db, clientId)
      if (held && !isClientGranted(ring, held)) throw new Stop(NOT_OURS)
      if (!held || !(await clients.setNames(db, clientId, names))) return
      await grantClient(db, ring, { ...held, names })
      await audits.insert(db, { actor: actor(), action: 'client.names', subject: clientId, detail: { names } })
    })
    print(terminal, options, { client_id: clientId, names }, `${clientId}: names are ${names}`)
    say(terminal, `Its senders must know, too: "names": ${JSON.stringify(names)} in each client.json of this client.`)
  })
}

export function rotate(terminal: Terminal, word: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const { clientId, userId } = await findOwnLiveClient(store, word)
    const apiKey = makeApiKey()
    await store.transaction(async db => {
      await clients.setApiKeyHash(db, clientId, ring.apiKeyHash(userId, apiKey))
      await audits.insert(db, { actor: actor(), action: 'client.api-key.rotate', subject: clientId })
    })
    const shown = { client_id: clientId, user_id: userId, api_key: apiKey.reveal() }
    print(terminal, options, shown, facts({ ...shown, api_key: `${shown.api_key}  (shown this once)` }))
  })
}
