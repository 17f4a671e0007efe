// `tokenmill client`: who may send work. Keys of clients are client-key.ts.
import { join, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { ROLES, type Role } from '../../../src/job/catalogue.ts'
import * as audits from '../../../src/store/access/audits.ts'
import * as clients from '../../../src/store/access/clients.ts'
import { makeApiKey } from '../../../src/vault/client-key.ts'
import { addCommand, addFamily, collect, type JsonOption, readUuid } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { jsonText, writePrivate } from '../../open/key-files.ts'
import { openCommandStore, openVault, withSession } from '../../open/open.ts'
import { baseUrlOf, type Registered, registerClient, relativeTo } from '../../open/register-client.ts'
import { actor, facts, moment, print, say, type Terminal, table } from '../../terminal.ts'
import { registerClientKey } from './client-key.ts'
import { findLiveClient } from './find-client.ts'
import { readJwkFile } from './jwk-file.ts'

interface AddOptions extends JsonOption {
  entity: string[]
  roles: Role[]
  publicKey?: string
  out?: string
}

export function registerClientFamily(program: Command, terminal: Terminal): void {
  const family = addFamily(program, 'client', 'clients, their keys and API keys')
  addCommand(family, 'add', 'registers a client and prints its credentials; the API key is shown this once')
    .argument('<name>', 'what people call it; names its directory too', readName)
    .requiredOption('--entity <uuid>', 'its merchant entity; repeat for others it may also act for', collect(readUuid))
    .requiredOption('--roles <a,b>', `what it may do: ${ROLES.join(', ')}`, readRoles)
    .option('--public-key <jwk file>', 'its own public key; without it a pair is made (Ed25519)')
    .option('--out <dir>', 'where its files go (default: clients/NAME in the data directory)')
    .action((name: string, options: AddOptions) => add(terminal, name, options))
  addCommand(family, 'list', 'lists clients').action((options: JsonOption) => list(terminal, options))
  addCommand(family, 'revoke <client>', 'ends a client for good, within 10 s on every worker').action(
    (word: string, options: JsonOption) => revoke(terminal, word, options),
  )
  registerClientKey(family, terminal)
  const apiKeys = addFamily(family, 'api-key', 'API keys')
  addCommand(apiKeys, 'rotate <client>', 'gives a client a new API key, shown this once; the old one ends').action(
    (word: string, options: JsonOption) => rotate(terminal, word, options),
  )
}

function readRoles(text: string): Role[] {
  const words = [...new Set(text.split(',').map(word => word.trim()))]
  const unknown = words.find(word => !ROLES.includes(word as Role))
  if (unknown !== undefined) throw new InvalidArgumentError(`Roles are ${ROLES.join(', ')}.`)
  return words as Role[]
}

/** It names a directory too. */
function readName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)) return text
  throw new InvalidArgumentError(
    'A name is 1 to 64 letters, digits, ".", "_" or "-", and begins with a letter or digit.',
  )
}

function add(terminal: Terminal, name: string, options: AddOptions): Promise<void> {
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

function textOf(registered: Registered, file: string): string {
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

function list(terminal: Terminal, options: JsonOption): Promise<void> {
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
      created_at: moment(client.createdAt),
      revoked_at: client.revokedAt === null ? null : moment(client.revokedAt),
    }))
    const rows = found.map(client => [
      client.clientId,
      client.name,
      client.revokedAt === null ? (client.system ? 'system' : 'active') : 'revoked',
      client.roles.join(',') || '-',
      moment(client.createdAt),
    ])
    print(terminal, options, shown, table(['CLIENT', 'NAME', 'STATE', 'ROLES', 'CREATED'], rows))
  })
}

function revoke(terminal: Terminal, word: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const { clientId } = await findLiveClient(store, word)
    await store.transaction(async db => {
      if (await clients.revoke(db, clientId))
        await audits.insert(db, { actor: actor(), action: 'client.revoke', subject: clientId })
    })
    print(terminal, options, { client_id: clientId, revoked: true }, `${clientId} is revoked`)
  })
}

function rotate(terminal: Terminal, word: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const { clientId, userId, system } = await findLiveClient(store, word)
    if (system) throw new Stop('A system client has no API key.')
    const apiKey = makeApiKey()
    await store.transaction(async db => {
      await clients.setApiKeyHash(db, clientId, ring.apiKeyHash(userId, apiKey))
      await audits.insert(db, { actor: actor(), action: 'client.api-key.rotate', subject: clientId })
    })
    const shown = { client_id: clientId, user_id: userId, api_key: apiKey.reveal() }
    print(terminal, options, shown, facts({ ...shown, api_key: `${shown.api_key}  (shown this once)` }))
  })
}
