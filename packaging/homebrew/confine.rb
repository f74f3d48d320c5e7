class Confine < Formula
  desc "Run one command inside a boundary that it cannot widen"
  homepage "@URL@"
  url "@URL@/confine-0.1.0.tar.gz"
  sha256 "@SHA256_SOURCE@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  depends_on :linux

  resource "vendor" do
    url "@URL@/confine-0.1.0-vendor.tar.gz"
    sha256 "@SHA256_VENDOR@"
  end

  def install
    (buildpath/"vendor").install resource("vendor")
    system "packaging/build"
    ENV["PREFIX"] = prefix.to_s
    ENV["BASHDIR"] = bash_completion.to_s
    ENV["ZSHDIR"] = zsh_completion.to_s
    ENV["FISHDIR"] = fish_completion.to_s
    system "packaging/install"
  end

  test do
    (testpath/"workspace").mkpath
    cd "workspace" do
      assert_equal "made\n", shell_output("#{bin}/confine --workspace . -- sh -c 'echo made | tee file'")
      assert_path_exists testpath/"workspace/file"
      shell_output("#{bin}/confine --workspace . -- sh -c 'echo made > ../outside' 2>&1", 1)
      refute_path_exists testpath/"outside"
    end
  end
end
