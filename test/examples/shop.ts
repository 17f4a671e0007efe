// Starts the example shop as its README does, with an installation: gateway, 3-D Secure service, workers, simulator,
// and the shop's server as a process.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
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

export async function openShop(): Promise<Shop> {
  const bundle = await openHttpBundle()
  const { installation, simulator } = bundle
  await installation.openWorkers({ roles: ['interactive'] })
  const gateway = await openGatewayFor(installation)
  const known = await readFile(join(installation.dataDir, 'clients', 'shop', 'client.json'), 'utf8')
  const file = { ...(JSON.parse(known) as { api_key: string }), base_url: `${gateway.url}/oidc` }
  const clientFile = join(installation.dataDir, 'shop.json')
  await writeFile(clientFile, JSON.stringify(file), { mode: 0o600 })
  const port = await freePort()
  const server = startScript('examples/checkout/server.mjs', [], {
    env: {
      ...(installation.env as Record<string, string>),
      CHECKOUT_PORT: String(port),
      CHECKOUT_CLIENT: clientFile,
      CHECKOUT_THREE_DS: bundle.url,
      CHECKOUT_DIRECTORY_SERVER: simulator.url,
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
    },
  }
}
