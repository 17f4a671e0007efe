// Starts the example shop as its README does, with an installation: gateway, 3-D Secure service, workers, simulator,
// and the shop's server as a process, in a folder of its own with the packed client.
import { cpSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installClient } from '../packages/installed-client.ts'
import { type Caller, openGatewayFor } from '../producers/gateway/bundle.ts'
import { type HttpBundle, openHttpBundle } from '../producers/gateway/three-ds/bundle.ts'
import { startScript } from '../support/process.ts'
import { freePort } from '../support/redis.ts'

export interface Shop {
  url: string
  bundle: HttpBundle
  gateway: Caller
  /** The merchant's API key, which no browser may see. */
  apiKey: string
  close(): Promise<void>
}

const EXAMPLE = fileURLToPath(new URL('../../examples/checkout', import.meta.url))
const COMMAND = fileURLToPath(new URL('../../bin/tokenmill.mjs', import.meta.url))

export async function openShop(): Promise<Shop> {
  const client = await installClient()
  const folder = join(client.project, 'checkout')
  cpSync(EXAMPLE, folder, { recursive: true, filter: path => !path.includes('node_modules') })
  const bundle = await openHttpBundle()
  const { installation, simulator } = bundle
  await installation.openWorkers({ roles: ['interactive'] })
  const gateway = await openGatewayFor(installation)
  const known = await readFile(join(installation.dataDir, 'clients', 'shop', 'client.json'), 'utf8')
  const file = { ...(JSON.parse(known) as { api_key: string }), base_url: `${gateway.url}/oidc` }
  const clientFile = join(installation.dataDir, 'shop.json')
  await writeFile(clientFile, JSON.stringify(file), { mode: 0o600 })
  const port = await freePort()
  const server = startScript(join(folder, 'server.mjs'), [], {
    env: {
      ...(installation.env as Record<string, string>),
      CHECKOUT_PORT: String(port),
      CHECKOUT_CLIENT: clientFile,
      CHECKOUT_THREE_DS: bundle.url,
      CHECKOUT_DIRECTORY_SERVER: simulator.url,
      CHECKOUT_TOKENMILL: COMMAND,
    },
  })
  const [, url = ''] = await server.line(/The shop is open: (\S+)/)
  return {
    url,
    bundle,
    gateway,
    apiKey: file.api_key,
    async close() {
      server.signal('SIGTERM')
      await server.exit
      await gateway.close()
      await bundle.close()
      client.remove()
    },
  }
}
