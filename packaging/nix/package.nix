{ lib, rustPlatform, glibc }:

let
  root = ../..;
  manifest = lib.importTOML (root + "/Cargo.toml");
in
rustPlatform.buildRustPackage {
  pname = manifest.package.name;
  version = manifest.package.version;
  src = lib.cleanSource root;
  cargoLock.lockFile = root + "/Cargo.lock";

  # A dynamic loader would obey LD_PRELOAD of those whose commands confine-shell confines.
  RUSTFLAGS = "-C target-feature=+crt-static";
  buildInputs = [ glibc.static ];

  # The tests need namespaces, servers and a second user.
  doCheck = false;

  postPatch = "patchShebangs packaging";

  installPhase = ''
    runHook preInstall
    TARGET_DIR=$(dirname "$(find target -path '*/release/confine' -type f | head -n 1)") \
      PREFIX=$out packaging/install
    runHook postInstall
  '';

  meta = {
    inherit (manifest.package) description;
    license = with lib.licenses; [ mit asl20 ];
    mainProgram = "confine";
    platforms = [ "x86_64-linux" "aarch64-linux" "riscv64-linux" ];
  };
}
